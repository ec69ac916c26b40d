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
    """The rows of an `events.jsonl`. BadLog unless every line is canonical and follows from the one before."""
    if data and not data.endswith(b"\n"):
        raise BadLog("the last line is cut short")
    rows: list[Row] = []
    prev = GENESIS
    for seq, line in enumerate(data.split(b"\n")[:-1]):
        row = _row(line, seq)
        if (row.seq, row.prev) != (seq, prev):
            raise BadLog(f"row {seq} does not follow from the one before")
        rows.append(row)
        prev = row.digest
    return Log(tuple(rows))


def to_bytes(events: Sequence[Event]) -> bytes:
    return b"".join(e.line() + b"\n" for e in events)


def _row(line: bytes, seq: int) -> Row:
    try:
        tree = parse(line, depth=DEPTH, values=VALUES)
        if canonical(tree) != line:
            raise BadLog(f"row {seq} is not in its canonical spelling")
        if set(tree) != FIELDS or tree["v"] != VERSION:
            raise BadLog(f"row {seq} is not a row of version {VERSION}")
        return Row(tree["seq"], Digest(tree["prev"]), Instant(tree["at"]), Deed.parse(tree["deed"]),
                   Kind(tree["kind"]), tuple(tree["acquires"]), tuple(tree["releases"]), tree["public"], sha256(line))
    except BadLog:
        raise
    except (ValueError, TypeError, KeyError, AttributeError) as problem:
        raise BadLog(f"row {seq} is not a row") from problem
