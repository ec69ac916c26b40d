"""What an auditor has in hand: the files of one folder, read with bounds, and what can be made of them. No judgement.

A run's own folder and a folder of exported files look the same: `closing.json`, `events.jsonl`, `report.json` (or one
per lease in its folder), each with its `.sig`, and `evidence/`. Nothing in here is trusted yet.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..domain.document import Json, canonical, parse, sha256
from ..domain.names import Digest
from ..errors import BadInput
from . import files
from .evidence import EvidenceFolder
from .log import BadLog, Log, Scope, of_bytes
from .notary import CLOSING, EVENTS, REPORT, SIGNATURE
from .sshsig import PublicKey

MOST_REPORT, MOST_LOG, MOST_SIGNATURE = 8 * 1024 * 1024, 64 * 1024 * 1024, 64 * 1024
DEPTH, VALUES = 32, 1_000_000


class NotMade(Exception):
    """A check lacks what it would look at; the text says what."""


@dataclass(frozen=True, slots=True)
class Release:
    """The tool that audits: what it would have sent to a node."""

    version: str
    payload: Digest
    locks: tuple[Digest, ...]


@dataclass(frozen=True, slots=True)
class Signed:
    """A document with its signature beside it. `tree` is None where the bytes are no canonical JSON object."""

    name: str
    data: bytes
    signature: bytes | None
    tree: Json = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tree", _tree(self.data))


@dataclass(frozen=True, slots=True)
class Case:
    trusted: frozenset[PublicKey]
    release: Release | None
    closing: Signed | None
    reports: tuple[Signed, ...]
    chain: Log | BadLog | None           # None: no log here
    evidence: EvidenceFolder

    def log(self) -> Log:
        """NotMade without a sound log: what is derived from it cannot be looked at."""
        if self.chain is None:
            raise NotMade(f"there is no {EVENTS} yet")
        if isinstance(self.chain, BadLog):
            raise NotMade("the log is not sound")
        return self.chain

    def closed(self) -> Json:
        """The closing record's tree, or NotMade."""
        if self.closing is None:
            raise NotMade("there is no closing record yet")
        if self.closing.tree is None:
            raise NotMade("the closing record cannot be read")
        return self.closing.tree


@dataclass(frozen=True, slots=True)
class LeaseCase:
    """One lease's report, seen with the rest."""

    case: Case
    signed: Signed

    @property
    def predicate(self) -> Json:
        if self.signed.tree is None:
            raise NotMade("the report cannot be read")
        return self.signed.tree["predicate"]

    @property
    def scope(self) -> str:
        return str(self.predicate["scope"])

    def rows(self) -> Scope:
        """Over the whole log: what came after the report counts too."""
        return self.case.log().of(self.scope)

    def wipe_document(self) -> bytes | None:
        """The document that the log names, from the report itself or from the evidence beside it."""
        answer = self.rows().result("wipe")
        if answer is None:
            return None
        embedded = self.predicate["wipe"]["document"]
        if embedded is not None and sha256(canonical(embedded)) == answer["evidence"]:
            return canonical(embedded)
        return self.case.evidence.find(answer["evidence"])

    def wiped(self) -> Json:
        """The wipe document's tree, or NotMade."""
        document = self.wipe_document()
        if document is None:
            raise NotMade("no wipe is recorded" if self.rows().result("wipe") is None else "its evidence is not here")
        return parse(document, depth=DEPTH, values=VALUES)


def load(folder: Path, trusted: frozenset[PublicKey], release: Release | None) -> Case:
    """BadInput when there is nothing of ours in the folder."""
    paths = [folder / REPORT, *sorted(folder.glob(f"lease-*/{REPORT}"), key=_number)]
    reports = tuple(s for s in (_signed(folder, path) for path in paths) if s)
    closing = _signed(folder, folder / CLOSING)
    if closing is None and not reports:
        raise BadInput(f"no report in {folder}", hint="sealtune audit RUN, or a folder with report.json")
    return Case(trusted, release, closing, reports, _chain(folder / EVENTS), EvidenceFolder(folder / "evidence"))


def _chain(path: Path) -> Log | BadLog | None:
    data = files.read(path, MOST_LOG)
    try:
        return None if data is None else of_bytes(data)
    except BadLog as problem:
        return problem


def _signed(folder: Path, path: Path) -> Signed | None:
    data = files.read(path, MOST_REPORT)
    if data is None:
        return None
    return Signed(str(path.relative_to(folder)), data,
                  files.read(path.with_name(path.name + SIGNATURE), MOST_SIGNATURE))


def _tree(data: bytes) -> Json:
    try:
        tree = parse(data, depth=DEPTH, values=VALUES)
        return tree if isinstance(tree, dict) and canonical(tree) == data else None
    except ValueError:
        return None


def _number(path: Path) -> tuple[int, str]:
    digits = path.parent.name.removeprefix("lease-")
    return (int(digits) if digits.isdecimal() and len(digits) < 9 else 0, digits)
