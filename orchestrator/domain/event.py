"""One row of the journal, and the folds over rows. The journal is the only ledger of a run.

Public and private parts are hashed apart: the exported chain carries the public bytes and the digest of
the private ones, so a report shows no address and still proves that nothing was changed or left out.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum

from .document import Json, canonical, sha256
from .names import Digest, Instant

VERSION = 1
GENESIS = Digest("genesis")


class Kind(StrEnum):
    INTENDED = "intended"
    DONE = "done"
    FAILED = "failed"        # proven: nothing came of it
    WAIVED = "waived"        # a release that could not be done, with the reason; never for money
    NOTED = "noted"          # an observation: checkpoint home, deadline read back, node left


@dataclass(frozen=True, slots=True)
class Deed:
    """The name of one action. It is an identity: never renamed, never counted by position."""

    scope: str               # "run", "lease-1" or "budget-1"
    step: str
    item: str = ""           # only for repeated steps: the absolute target of a hold

    def __str__(self) -> str:
        return "/".join(filter(None, (self.scope, self.step, self.item)))

    @classmethod
    def parse(cls, text: str) -> Deed:
        scope, step, *item = text.split("/", 2)
        return cls(scope, step, *item)


@dataclass(frozen=True, slots=True)
class Event:
    seq: int
    prev: Digest
    at: Instant
    deed: Deed
    kind: Kind
    acquires: tuple[str, ...]    # written into the row: an old journal needs no table of today
    releases: tuple[str, ...]
    public: Json
    private: Json
    salt: str = ""               # random, beside the private part: a short one could be guessed from its digest

    def line(self) -> bytes:
        """The exported form: canonical JSON, the private part as its digest. One line of events.jsonl."""
        return canonical({
            "v": VERSION, "seq": self.seq, "prev": self.prev, "at": self.at, "deed": str(self.deed),
            "kind": self.kind.value, "acquires": list(self.acquires), "releases": list(self.releases),
            "public": self.public, "private": sha256(self.salt.encode() + canonical(self.private)),
        })

    def digest(self) -> Digest:
        return sha256(self.line())


BILLING = frozenset({"lease", "deposit", "budget"})
ON_NODE = frozenset({"keeper", "files", "data", "process"})


@dataclass(frozen=True, slots=True)
class Owed:
    """Something acquired and not yet released. `certain` is False between intent and done."""

    scope: str
    what: str
    by: Deed
    certain: bool


def owed(events: Iterable[Event]) -> tuple[Owed, ...]:
    """What we still owe, oldest first. Everything else (`status`, `resume`, `end`) is a view of this."""
    open_: dict[tuple[str, str], Owed] = {}
    for e in events:
        scope = e.deed.scope
        if e.kind in (Kind.INTENDED, Kind.DONE):         # an adopted lease has no intent of ours, only a DONE
            for what in e.acquires:
                first = open_.setdefault((scope, what), Owed(scope, what, e.deed, certain=False))
                open_[scope, what] = replace(first, certain=first.certain or e.kind is Kind.DONE)
        if e.kind is Kind.FAILED:                        # proven undone: nothing of this deed is owed after all
            open_ = {key: item for key, item in open_.items() if item.by != e.deed or item.certain}
        if e.kind in (Kind.DONE, Kind.WAIVED):
            for what in e.releases:
                open_.pop((scope, what), None)
    return tuple(open_.values())


def last(events: Sequence[Event], deed: Deed, *kinds: Kind) -> Event | None:
    """The newest row of a deed, of one of these kinds."""
    return next((e for e in reversed(events) if e.deed == deed and e.kind in kinds), None)


def head(events: Sequence[Event]) -> Digest:
    return events[-1].digest() if events else GENESIS
