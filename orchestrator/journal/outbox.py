"""Signed transactions before they are sent (port Outbox): kept per wallet, since the nonce is the wallet's.

An attempt is never changed or removed. An outcome closes all attempts of its intent made so far; after
`dead` the intent may be signed anew, after `mined` never.
"""
from __future__ import annotations

import re
from collections.abc import Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path

from .. import second_row
from . import locks
from .database import Database, JournalTrouble

WALLET = re.compile(r"[0-9]{1,20}:0x[0-9a-fA-F]{40}")
OPEN = "a.id > coalesce((SELECT max(upto) FROM outcomes o WHERE o.wallet = a.wallet AND o.key = a.key), 0)"


@dataclass(frozen=True, slots=True)
class Attempt:
    """One signed transaction (port Attempt)."""

    nonce: int
    raw: bytes
    hash: str


class Outbox:
    """The sender's memory, in the journal's file. Any process may open one."""

    def __init__(self, state: Path) -> None:
        self._state, self._db = state, Database(state)

    def lock(self, wallet: str) -> AbstractContextManager[None]:
        """Waits for the other process. Not to be taken twice by one thread."""
        if not WALLET.fullmatch(wallet):
            raise ValueError(f"not a wallet: {wallet!r}")
        return locks.held(self._state / "locks" / wallet.lower().replace(":", "-"))

    def attempts(self, wallet: str, key: str) -> Sequence[Attempt]:
        rows = self._db.ask("SELECT nonce, raw, hash FROM attempts WHERE wallet = ? AND key = ? ORDER BY id",
                            wallet.lower(), key)
        return [Attempt(*row) for row in rows]

    def keep(self, wallet: str, key: str, attempt: second_row.Attempt) -> None:
        """The same transaction twice is once. JournalTrouble after `mined`: the intent has happened."""
        wallet = wallet.lower()
        with self._db.writing() as db:
            if db.execute("SELECT 1 FROM attempts WHERE wallet = ? AND key = ? AND hash = ?",
                          (wallet, key, attempt.hash)).fetchone():
                return
            if db.execute("SELECT 1 FROM outcomes WHERE wallet = ? AND key = ? AND outcome = 'mined'",
                          (wallet, key)).fetchone():
                raise JournalTrouble(f"{key} was mined already, it is not signed again")
            db.execute("INSERT INTO attempts (wallet, key, nonce, hash, raw) VALUES (?, ?, ?, ?, ?)",
                       (wallet, key, attempt.nonce, attempt.hash, attempt.raw))

    def pending(self, wallet: str) -> Sequence[tuple[str, Attempt]]:
        rows = self._db.ask(f"SELECT key, nonce, raw, hash FROM attempts a WHERE wallet = ? AND {OPEN} "  # noqa: S608  own text
                            "ORDER BY nonce, id", wallet.lower())
        return [(key, Attempt(*rest)) for key, *rest in rows]

    def conclude(self, wallet: str, key: str, outcome: str) -> None:
        """Said twice is once. An intent that was never signed has no outcome."""
        wallet = wallet.lower()
        with self._db.writing() as db:
            newest, = db.execute(f"SELECT max(id) FROM attempts a WHERE wallet = ? AND key = ? AND {OPEN}",  # noqa: S608
                                 (wallet, key)).fetchone()
            if newest is not None:
                db.execute("INSERT INTO outcomes (wallet, key, upto, outcome) VALUES (?, ?, ?, ?)",
                           (wallet, key, newest, outcome))

    def close(self) -> None:
        self._db.close()
