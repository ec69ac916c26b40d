"""What an auditor has in hand: the files of one folder, read with bounds, and what can be made of them. No judgement.

A run's own folder and a folder of exported files look the same: `closing.json`, `events.jsonl`, `report.json` (or one
per lease in its folder), each with its `.sig`, and `evidence/`. Nothing in here is trusted yet, the folders' names
included: what is not named as ours is not looked at, and no link is followed.
"""
from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

from ..domain.document import Json, canonical, parse, sha256
from ..domain.names import Digest
from ..errors import BadInput
from . import files
from .evidence import EvidenceFolder
from .files import EvidenceTrouble
from .log import BadLog, Log, OtherLog, Scope, of_bytes
from .notary import CLOSING, EVENTS, REPORT, SIGNATURE
from .sshsig import PublicKey

MOST_REPORT, MOST_LOG, MOST_SIGNATURE = 32 * 1024 * 1024, 64 * 1024 * 1024, 64 * 1024
MOST_LEASES = 16                         # of one run; the story takes fewer
DEPTH, VALUES = 32, 1_000_000
LEASE = re.compile(r"lease-[1-9][0-9]{0,5}")
OURS = frozenset(name + end for name in (REPORT, CLOSING, EVENTS) for end in ("", SIGNATURE))


class NotMade(Exception):
    """A check lacks what it would look at; the text says what."""


@dataclass(frozen=True, slots=True)
class Release:
    """The tool that audits: what it would have sent to a node."""

    version: str
    payload: Digest
    locks: tuple[Digest, ...]

    def differs(self, tool: Json, payload: Json = None, lock: Json = None) -> str:
        """What shows that another release made it, in words; "" where nothing does. None: not said there."""
        if tool != self.version:
            return f"made by another release (sealtune {tool}, this is {self.version})"
        if payload not in (None, self.payload):
            return f"made by another release (payload {payload}, this one sends {self.payload})"
        return "" if lock in (None, *self.locks) else f"made by another release (lock {lock}, none of this one's)"


@dataclass(frozen=True, slots=True)
class Signed:
    """A document with its signature beside it. `tree` is None where the bytes are no canonical JSON object."""

    name: str
    data: bytes
    signature: bytes | None
    tree: Json = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "tree", tree_of(self.data))


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
        if isinstance(self.chain, OtherLog):
            raise NotMade("the log was written by another release")
        if isinstance(self.chain, BadLog):
            raise NotMade("the log is not sound")
        return self.chain

    def sent(self, *scopes: str) -> list[Json]:
        """What payload and lock the log says were sent to these nodes; [] where there is no log to say it."""
        found = [self.chain.of(scope).intent("install") for scope in scopes] if isinstance(self.chain, Log) else []
        return [order for order in found if isinstance(order, dict)]

    def other_release(self) -> str:
        """Whether another release closed this run: in words, or ""."""
        tree = self.closing.tree if self.closing else None
        sent = self.sent(*self.chain.leases()) if isinstance(self.chain, Log) else []
        return self.differs(tree.get("tool"), sent) if tree else ""

    def differs(self, tool: Json, sent: list[Json]) -> str:
        if self.release is None:
            return ""
        orders = sent or [{}]
        return next(filter(None, (self.release.differs(tool, o.get("digest"), o.get("lock")) for o in orders)), "")

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

    def other_release(self) -> str:
        """Whether another release made this report, or sent the payload that it is about: in words, or ""."""
        said = self.signed.tree.get("predicate") if self.signed.tree else None
        if not isinstance(said, dict):
            return ""
        return self.case.differs(said.get("tool"), self.case.sent(str(said.get("scope"))))

    @property
    def folder(self) -> str:
        """The lease's folder in which it lies; "" at the top."""
        return self.signed.name.rpartition("/")[0]

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


def folder_of(path: Path) -> Path | None:
    """The run's folder, of what a person may name: itself, one of its leases' folders, or a file of ours in either.
    None where there is no such thing; BadInput for a file that is none of ours."""
    if path.is_file():
        if path.name not in OURS:
            raise BadInput(f"{path} is not called {REPORT}", hint=f"sealtune audit RUN, FOLDER, or FOLDER/{REPORT}: "
                           "a report keeps its name, and what lies beside it")
        path = path.parent
    if not path.is_dir():
        return None
    whole = path.absolute().parent
    above = LEASE.fullmatch(path.absolute().name) and any((whole / name).is_file() for name in (CLOSING, EVENTS))
    return whole if above else path


def load(folder: Path, trusted: frozenset[PublicKey], release: Release | None) -> Case:
    """BadInput when there is nothing of ours in the folder; EvidenceTrouble for links and for more than is taken."""
    paths = [folder / REPORT, *(lease / REPORT for lease in _leases(folder))]
    reports = tuple(s for s in (_signed(folder, path) for path in paths) if s)
    closing = _signed(folder, folder / CLOSING)
    if closing is None and not reports:
        raise BadInput(f"no report in {folder}", hint=f"sealtune audit RUN, or a folder with {REPORT}")
    evidence = EvidenceFolder(files.must_be_no_link(folder / "evidence"))
    return Case(trusted, release, closing, reports, _chain(folder / EVENTS), evidence)


def _leases(folder: Path) -> list[Path]:
    """The folders of leases, by number."""
    found = [path for path in folder.iterdir() if LEASE.fullmatch(path.name)] if folder.is_dir() else []
    if len(found) > MOST_LEASES:
        raise EvidenceTrouble(f"{len(found)} leases in {folder}, at most {MOST_LEASES} are taken")
    return sorted(map(files.must_be_no_link, found), key=lambda path: int(path.name.removeprefix("lease-")))


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


def tree_of(data: bytes) -> Json:
    """The object that these bytes spell in the one way there is; None otherwise."""
    try:
        tree = parse(data, depth=DEPTH, values=VALUES)
        return tree if isinstance(tree, dict) and canonical(tree) == data else None
    except ValueError:
        return None
