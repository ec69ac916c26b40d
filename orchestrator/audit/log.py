"""The journal's rows as they are exported: one canonical line each, the private part only as a digest.

A report is made of these rows and not of the journal's own, so that whoever holds `events.jsonl` can make it again.
Public parts are read as plain JSON: an auditor's version of the values need not be that of the run.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import cast

from ..domain.document import Json, canonical, parse, sha256
from ..domain.event import GENESIS, VERSION, Deed, Event, Kind, Owed, owed
from ..domain.names import Digest, Instant

DEPTH, VALUES = 64, 1_000_000
FIELDS = {"v", "seq", "prev", "at", "deed", "kind", "acquires", "releases", "public", "private"}


class BadLog(ValueError):
    """A line is not a row, or does not follow from the one before; names the row."""


class OtherLog(BadLog):
    """Sound as a chain, of `count` rows up to `head`, but with rows that only another release can read."""

    def __init__(self, text: str, count: int, head: Digest) -> None:
        super().__init__(text)
        self.count, self.head = count, head


@dataclass(frozen=True, slots=True)
class Row:
    seq: int
    prev: Digest
    at: Instant
    deed: Deed
    kind: Kind
    acquires: tuple[str, ...]
    releases: tuple[str, ...]
    public: Json
    digest: Digest


@dataclass(frozen=True, slots=True)
class Log:
    """All rows of a run, or the first so many."""

    rows: tuple[Row, ...]

    @property
    def head(self) -> Digest:
        return self.rows[-1].digest if self.rows else GENESIS

    @property
    def count(self) -> int:
        return len(self.rows)

    def first(self, count: int) -> Log:
        return Log(self.rows[:count])

    def leases(self) -> tuple[str, ...]:
        """Scopes of leases, in the order in which they were begun."""
        return tuple(s for s in dict.fromkeys(r.deed.scope for r in self.rows) if s.startswith("lease-"))

    def owed(self) -> tuple[Owed, ...]:
        """The journal's own fold: it asks of a row nothing that an exported one lacks."""
        return owed(cast("tuple[Event, ...]", self.rows))

    def row(self, deed: Deed, kind: Kind) -> Row | None:
        return next((r for r in reversed(self.rows) if r.deed == deed and r.kind is kind), None)

    def of(self, scope: str) -> Scope:
        return Scope(self, scope)


@dataclass(frozen=True, slots=True)
class Scope:
    """One scope's rows: what was meant, what came of it. Public parts, None where there is no such row."""

    log: Log
    name: str

    def intent(self, step: str, item: str = "") -> Json:
        return self._public(step, item, Kind.INTENDED)

    def result(self, step: str, item: str = "") -> Json:
        return self._public(step, item, Kind.DONE)

    def noted(self, step: str, item: str = "") -> Json:
        return self._public(step, item, Kind.NOTED)

    def waived(self, step: str) -> str:
        """The kind of error for which a release was given up; "" where it was not."""
        row = self._public(step, "", Kind.WAIVED)
        return str(row["error"]) if isinstance(row, dict) else ""

    @property
    def adopted(self) -> bool:
        """Rented by another laptop, only ended by this one: an outcome without an intent."""
        return self.result("open") is not None and self.intent("open") is None

    def done(self, step: str) -> Row | None:
        return self.log.row(Deed(self.name, step), Kind.DONE)

    def items(self, step: str, kind: Kind) -> tuple[Row, ...]:
        """All rows of a repeated step, oldest first."""
        return tuple(r for r in self.log.rows if (r.deed.scope, r.deed.step, r.kind) == (self.name, step, kind))

    def acquired(self, names: frozenset[str]) -> tuple[str, ...]:
        """Which of these things this scope ever acquired, or may have."""
        return tuple(dict.fromkeys(w for r in self.log.rows if r.deed.scope == self.name
                                   for w in r.acquires if w in names))

    def _public(self, step: str, item: str, kind: Kind) -> Json:
        row = self.log.row(Deed(self.name, step, item), kind)
        return row.public if row else None


def of_events(events: Sequence[Event]) -> Log:
    return Log(tuple(Row(e.seq, e.prev, e.at, e.deed, e.kind, e.acquires, e.releases, e.public, e.digest())
                     for e in events))


def of_bytes(data: bytes) -> Log:
    """The rows of an `events.jsonl`. BadLog unless every line is canonical and follows from the one before; OtherLog
    where that holds, and the first row that says so is of a later version."""
    if data and not data.endswith(b"\n"):
        raise BadLog("the last line is cut short")
    rows: list[Row] = []
    prev, later = GENESIS, ""
    lines = data.split(b"\n")[:-1]
    for seq, line in enumerate(lines):
        tree = _tree(line, seq)
        if (tree["seq"], tree["prev"]) != (seq, prev) or type(tree["seq"]) is not int:
            raise BadLog(f"row {seq} does not follow from the one before")
        prev = sha256(line)
        if type(tree["v"]) is int and tree["v"] > VERSION:
            later = later or f"row {seq} is of version {tree['v']}, here {VERSION} is known"
        else:
            rows.append(_row(tree, seq, prev))
    if later:
        raise OtherLog(later, len(lines), prev)
    return Log(tuple(rows))


def to_bytes(events: Sequence[Event]) -> bytes:
    return b"".join(e.line() + b"\n" for e in events)


def _tree(line: bytes, seq: int) -> dict[str, Json]:
    """One line, in its one spelling, with what any version of a row has."""
    try:
        tree = parse(line, depth=DEPTH, values=VALUES)
        if canonical(tree) != line:
            raise BadLog(f"row {seq} is not in its canonical spelling")
    except BadLog:
        raise
    except ValueError as problem:
        raise BadLog(f"row {seq} is not a row") from problem
    if not isinstance(tree, dict) or not tree.keys() >= {"v", "seq", "prev"}:
        raise BadLog(f"row {seq} is not a row")
    return tree


def _row(tree: dict[str, Json], seq: int, digest: Digest) -> Row:
    if set(tree) != FIELDS or tree["v"] != VERSION or type(tree["v"]) is not int:
        raise BadLog(f"row {seq} is not a row of version {VERSION}")
    acquires, releases = tree["acquires"], tree["releases"]
    try:
        deed, kind = Deed.parse(tree["deed"]), Kind(tree["kind"])
    except (ValueError, TypeError, AttributeError) as problem:
        raise BadLog(f"row {seq} is not a row") from problem
    if str(deed) != tree["deed"] or not _is_time(tree["at"]) or not (_are_words(acquires) and _are_words(releases)):
        raise BadLog(f"row {seq} is not a row")
    return Row(seq, Digest(tree["prev"]), Instant(tree["at"]), deed, kind, tuple(acquires), tuple(releases),
               tree["public"], digest)


def _is_time(at: Json) -> bool:
    return type(at) is int and 0 <= at < 2 ** 40


def _are_words(names: Json) -> bool:
    return isinstance(names, list) and all(isinstance(name, str) for name in names)
