"""An Outbox in memory, and one that dies on command. The durable one is tested in the journal's room."""
from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from orchestrator.second_row import Attempt, Outbox


class MemoryOutbox:
    def __init__(self) -> None:
        self._locks: dict[str, threading.Lock] = {}
        self.kept: dict[tuple[str, str], list[tuple[Attempt, bool]]] = {}   # attempt, concluded

    @contextmanager
    def lock(self, wallet: str) -> Iterator[None]:
        with self._locks.setdefault(wallet, threading.Lock()):
            yield

    def attempts(self, wallet: str, key: str) -> Sequence[Attempt]:
        return [attempt for attempt, _ in self.kept.get((wallet, key), [])]

    def keep(self, wallet: str, key: str, attempt: Attempt) -> None:
        self.kept.setdefault((wallet, key), []).append((attempt, False))

    def pending(self, wallet: str) -> Sequence[tuple[str, Attempt]]:
        found = [(key, attempt) for (of, key), rows in self.kept.items() if of == wallet
                 for attempt, concluded in rows if not concluded]
        return sorted(found, key=lambda pair: pair[1].nonce)

    def conclude(self, wallet: str, key: str, outcome: str) -> None:
        assert outcome in ("mined", "dead")
        self.kept[wallet, key] = [(attempt, True) for attempt, _ in self.kept[wallet, key]]


class Killed(BaseException):
    """The process ends here."""


class DyingOutbox:
    """Forwards to another outbox and dies right after it kept something, `lives` times later."""

    def __init__(self, inner: Outbox, lives: int = 0) -> None:
        self._inner, self.lives = inner, lives
        self.lock, self.attempts, self.pending, self.conclude = (
            inner.lock, inner.attempts, inner.pending, inner.conclude)

    def keep(self, wallet: str, key: str, attempt: Attempt) -> None:
        self._inner.keep(wallet, key, attempt)
        if self.lives == 0:
            raise Killed
        self.lives -= 1
