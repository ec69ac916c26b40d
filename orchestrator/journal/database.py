"""The SQLite file: opened, made append-only, and its errors put into our words. No meaning of rows in here.

WAL with full sync: a row is on disk when the statement returns. One connection a process, one thread at a
time; other processes wait for each other inside SQLite.
"""
from __future__ import annotations

import errno
import os
import sqlite3
import threading
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import EXIT_BILLING, SealtuneError
from .locks import held

FILE = "journal.sqlite"
WAIT_SECONDS, LAYOUT = 30, 1

SCHEMA = """
CREATE TABLE IF NOT EXISTS rows (
    id INTEGER PRIMARY KEY, run TEXT NOT NULL, seq INTEGER NOT NULL,
    line TEXT NOT NULL, private TEXT NOT NULL, salt TEXT NOT NULL, UNIQUE (run, seq)) STRICT;
CREATE TABLE IF NOT EXISTS attempts (
    id INTEGER PRIMARY KEY, wallet TEXT NOT NULL, key TEXT NOT NULL,
    nonce INTEGER NOT NULL, hash TEXT NOT NULL, raw BLOB NOT NULL, UNIQUE (wallet, hash)) STRICT;
CREATE TABLE IF NOT EXISTS outcomes (
    id INTEGER PRIMARY KEY, wallet TEXT NOT NULL, key TEXT NOT NULL,
    upto INTEGER NOT NULL, outcome TEXT NOT NULL CHECK (outcome IN ('mined', 'dead'))) STRICT;
CREATE INDEX IF NOT EXISTS attempts_by_key ON attempts (wallet, key);
CREATE INDEX IF NOT EXISTS outcomes_by_key ON outcomes (wallet, key);
CREATE TRIGGER IF NOT EXISTS rows_in_order BEFORE INSERT ON rows
    WHEN NEW.seq != (SELECT coalesce(max(seq) + 1, 0) FROM rows WHERE run = NEW.run)
    BEGIN SELECT RAISE(ABORT, 'not the next row of this run'); END;
"""
NEVER = """CREATE TRIGGER IF NOT EXISTS {table}_no_{verb} BEFORE {verb} ON {table}
    BEGIN SELECT RAISE(ABORT, 'append only'); END;"""
NO_REPLACE = """CREATE TRIGGER IF NOT EXISTS {table}_no_replace BEFORE INSERT ON {table}
    WHEN EXISTS (SELECT 1 FROM {table} WHERE id = NEW.id {or_same})
    BEGIN SELECT RAISE(ABORT, 'append only'); END;"""
SAME = {"rows": "", "attempts": "OR (wallet = NEW.wallet AND hash = NEW.hash)", "outcomes": ""}


class JournalTrouble(SealtuneError):
    """The journal could not be read or written; nothing was begun that it does not show. What it would show may bill."""

    exit_code = EXIT_BILLING


class Database:
    """The one file. Made 0600 at first use, in a folder 0700."""

    def __init__(self, state: Path) -> None:
        self.path = state / FILE
        self._lock = threading.Lock()
        with self._in_our_words():
            state.mkdir(mode=0o700, parents=True, exist_ok=True)
            _make(self.path)
            self._db = sqlite3.connect(self.path, timeout=WAIT_SECONDS, isolation_level=None, check_same_thread=False)
            self.close = weakref.finalize(self, self._db.close)
            self._db.execute("PRAGMA synchronous = FULL")
            with held(state / "locks" / "schema"):       # SQLite does not wait while the mode changes
                self._prepare()

    def _prepare(self) -> None:
        version = self._db.execute("PRAGMA user_version").fetchone()[0]
        if version > LAYOUT:
            raise JournalTrouble(f"journal {self.path} is of a newer sealtune (layout {version}, here {LAYOUT} is known)",
                                 hint="go on with the sealtune that made it")
        if version == LAYOUT:
            return
        self._db.execute("PRAGMA journal_mode = WAL")
        never = "".join(NEVER.format(table=t, verb=v) for t in SAME for v in ("UPDATE", "DELETE"))
        replace = "".join(NO_REPLACE.format(table=t, or_same=s) for t, s in SAME.items())
        self._db.executescript(f"BEGIN IMMEDIATE; {SCHEMA} {never} {replace} PRAGMA user_version = {LAYOUT}; COMMIT;")

    def ask(self, sql: str, *values: Any) -> list[tuple[Any, ...]]:
        with self._lock, self._in_our_words():
            return self._db.execute(sql, values).fetchall()

    @contextmanager
    def writing(self) -> Iterator[sqlite3.Connection]:
        """One transaction, on disk when the block is left; nothing of it when it raises."""
        with self._lock, self._in_our_words():
            self._db.execute("BEGIN IMMEDIATE")
            try:
                yield self._db
                self._db.execute("COMMIT")
            except BaseException:
                if self._db.in_transaction:
                    self._db.execute("ROLLBACK")
                raise

    @contextmanager
    def _in_our_words(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as problem:
            raise JournalTrouble(f"journal {self.path}: {problem}", hint=_hint(problem)) from problem


def _hint(problem: Exception) -> str:
    if isinstance(problem, sqlite3.DatabaseError) and not isinstance(problem, sqlite3.OperationalError):
        return f"move {FILE} away; sealtune rentals then asks the markets what is open"
    return "is the disk full, or the folder read-only?"


def _make(path: Path) -> None:
    """An empty file, 0600, where there is none. One that is there is never opened here: closing it would drop the locks
    that SQLite holds on it for another connection of this process, and other processes would take its log away."""
    try:
        os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600))
    except FileExistsError:
        if path.is_symlink():
            raise OSError(errno.ELOOP, "is a symbolic link") from None
