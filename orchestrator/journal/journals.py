"""Runs and their rows. A row is kept as the line that is exported, its private part and salt beside it.

What is read is checked: every row follows from the one before, and says what its digest was made of.
"""
from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from pathlib import Path
from typing import Any

from ..domain.document import Json, canonical, parse
from ..domain.event import GENESIS, VERSION, Deed, Event, Kind
from ..domain.names import Digest, Instant, RunId
from ..errors import EXIT_CONTRADICTED, NoSuchRun, Refused, RunLocked, SealtuneError
from ..ports import Clock, Journal
from . import locks
from .database import Database, JournalTrouble

RUN_NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,79}")
DEPTH, VALUES = 64, 1_000_000            # our own rows; the limits of `parse` are for strangers


class JournalChanged(SealtuneError):
    """A row does not follow from the one before: somebody edited the file."""

    exit_code = EXIT_CONTRADICTED


class Journals:
    """All runs of a state directory (port Journals)."""

    def __init__(self, state: Path, clock: Clock) -> None:
        self._state, self._clock, self._db = state, clock, Database(state)
        self._chains: dict[RunId, _Chain] = {}

    def create(self, run: RunId) -> AbstractContextManager[Journal]:
        """Refused when there is such a run; one without a row was never begun."""
        if not RUN_NAME.fullmatch(run):
            raise Refused(f"not a name for a run: {run!r}")
        if self._begun(run) or (self._lock_file(run).exists() and self.in_use(run)):
            raise Refused(f"run {run} exists", hint=f"sealtune resume {run}")
        return self._open(run)

    def lock(self, run: RunId) -> AbstractContextManager[Journal]:
        self._must_exist(run)
        return self._open(run)

    def read(self, run: RunId) -> Sequence[Event]:
        self._must_exist(run)
        return self._chain(run).rows()

    def runs(self) -> Sequence[RunId]:
        return [RunId(run) for run, in self._db.ask("SELECT run FROM rows WHERE seq = 0 ORDER BY id")]

    def in_use(self, run: RunId) -> bool:
        self._must_exist(run)
        return locks.is_held(self._lock_file(run), self._gate)

    def last_contact(self, run: RunId) -> Instant:
        self._must_exist(run)
        file = self._lock_file(run)
        if file.exists():
            return Instant(int(file.stat().st_mtime))
        return max((e.at for e in self.read(run)), default=Instant(0))

    def close(self) -> None:
        self._db.close()

    @contextmanager
    def _open(self, run: RunId) -> Iterator[Journal]:
        file = self._lock_file(run)
        fd = locks.take(file, self._gate)
        if fd is None:
            raise RunLocked(f"run {run} is in use by process {locks.holder(file)}", hint=f"sealtune status {run}")
        journal = RunJournal(self._chain(run), file, self._clock)
        try:
            locks.write_holder(fd)
            journal.contact()
            journal.events()             # a changed journal is noticed before anything is done with it
            yield journal
        finally:
            journal.held = False
            os.close(fd)

    def _chain(self, run: RunId) -> _Chain:
        return self._chains.setdefault(run, _Chain(self._db, run))

    def _lock_file(self, run: RunId) -> Path:
        return self._state / "runs" / run / "lock"

    @property
    def _gate(self) -> Path:
        return self._state / "locks" / "gate"

    def _known(self, run: RunId) -> bool:
        return bool(RUN_NAME.fullmatch(run)) and (self._lock_file(run).exists() or self._begun(run))

    def _begun(self, run: RunId) -> bool:
        """It has rows. A lock file alone is what a crash left before the first one."""
        return bool(self._db.ask("SELECT 1 FROM rows WHERE run = ? LIMIT 1", run))

    def _must_exist(self, run: RunId) -> None:
        if not self._known(run):
            raise NoSuchRun(f"no such run: {run}", hint="sealtune status")


class RunJournal:
    """One run, open for writing by the one process that holds its lock (port Journal)."""

    def __init__(self, chain: _Chain, lock_file: Path, clock: Clock) -> None:
        self._chain, self._lock_file, self._clock, self.held = chain, lock_file, clock, True

    def append(self, deed: Deed, kind: Kind, public: Json = None, private: Json = None,
               acquires: tuple[str, ...] = (), releases: tuple[str, ...] = ()) -> Event:
        if not self.held:
            raise RunLocked("the run was let go, nothing is written to it any more")
        return self._chain.append(self._clock.now(), deed, kind, public, private, acquires, releases)

    def events(self) -> Sequence[Event]:
        return self._chain.rows()

    def contact(self) -> None:
        now = self._clock.now()
        with suppress(FileNotFoundError):    # somebody tidied up; the lock itself is held by the kernel
            os.utime(self._lock_file, (now, now))


class _Chain:
    """The rows of one run, read once and then only what is new."""

    def __init__(self, db: Database, run: RunId) -> None:
        self._db, self._run = db, run
        self._rows: tuple[Event, ...] = ()
        self._head: Digest = GENESIS

    def rows(self) -> Sequence[Event]:
        new = self._db.ask("SELECT line, private, salt FROM rows WHERE run = ? AND seq >= ? ORDER BY seq",
                           self._run, len(self._rows))
        if new:                          # all at once: a long run's rows would be copied for each of them
            fresh, head = list(self._rows), self._head
            for stored in new:
                fresh.append(self._checked(len(fresh), head, *stored))
                head = fresh[-1].digest()
            self._rows, self._head = tuple(fresh), head
        return self._rows

    def append(self, at: Instant, deed: Deed, kind: Kind, public: Json, private: Json,
               acquires: tuple[str, ...], releases: tuple[str, ...]) -> Event:
        self.rows()
        event = Event(len(self._rows), self._head, at, deed, kind, acquires, releases, public, private,
                      secrets.token_hex(16))
        stored = event.line().decode(), canonical(private).decode(), event.salt
        event = _event(*stored)          # what is handed out is what a later reader will see
        with self._db.writing() as db:
            db.execute("INSERT INTO rows (run, seq, line, private, salt) VALUES (?, ?, ?, ?, ?)",
                       (self._run, event.seq, *stored))
        self._rows, self._head = (*self._rows, event), event.digest()
        return event

    def _checked(self, seq: int, prev: Digest, line: str, private: str, salt: str) -> Event:
        try:
            event = _event(line, private, salt)
        except (ValueError, KeyError, TypeError) as problem:
            raise self._changed(seq) from problem
        if event.line() != line.encode() or (event.seq, event.prev) != (seq, prev):
            raise self._changed(seq)
        return event

    def _changed(self, seq: int) -> JournalChanged:
        return JournalChanged(f"row {seq} of run {self._run} was changed after it was written",
                              hint="end what may still bill with: sealtune end --leaked")


def _event(line: str, private: str, salt: str) -> Event:
    tree: dict[str, Any] = parse(line.encode(), depth=DEPTH, values=VALUES)
    if tree["v"] > VERSION:
        raise JournalTrouble(f"row {tree['seq']} was written by a newer sealtune (row version {tree['v']})",
                             hint="go on with the sealtune that wrote it")
    return Event(tree["seq"], Digest(tree["prev"]), Instant(tree["at"]), Deed.parse(tree["deed"]), Kind(tree["kind"]),
                 tuple(tree["acquires"]), tuple(tree["releases"]), tree["public"],
                 parse(private.encode(), depth=DEPTH, values=VALUES), salt)
