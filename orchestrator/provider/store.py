"""What the provider must not forget: who was let in, with which key, under which Ready message. One small JSON file.

Written whole and moved into place, so that a crash leaves the old state or the new one. The chain is the truth about
money; this file only remembers what the chain cannot know. A file that cannot be read stops the provider: starting
afresh could leave a renter's key on the machine.
"""
from __future__ import annotations

import os
import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from ..domain.document import canonical, decode, encode, parse
from ..domain.escrow import Ready
from ..errors import Refused

MOST_ENDED = 200
MOST_BYTES = 4 << 20


@dataclass(frozen=True, slots=True)
class Guest:
    """One renter of one rental. Phases: waiting (hinted), ready (let in, activated), ended (locked out)."""

    rental_id: str
    renter: str
    ssh_public_key: str
    phase: str = "waiting"
    ready: Ready | None = None
    signature: str = ""


@dataclass(frozen=True, slots=True)
class Book:
    guests: tuple[Guest, ...] = ()

    def guest(self, rental_id: str) -> Guest | None:
        return next((g for g in self.guests if g.rental_id == rental_id), None)

    def present(self) -> tuple[Guest, ...]:
        return tuple(g for g in self.guests if g.phase != "ended")

    def having(self, guest: Guest) -> Book:
        """With this guest in it, in the place of the one with the same rental."""
        others = tuple(g for g in self.guests if g.rental_id != guest.rental_id)
        present = tuple(g for g in others if g.phase != "ended")
        ended = tuple(g for g in others if g.phase == "ended")[-MOST_ENDED:]
        return replace(self, guests=(*ended, *present, guest))


class Store:
    """provider.json in `folder`. `change` is the only way to write: one at a time, on disk when it returns."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._path, self._lock = folder / "provider.json", threading.Lock()
        self._book = self._read()

    def book(self) -> Book:
        return self._book

    def change(self, how: Callable[[Book], Book]) -> Book:
        with self._lock:
            after = how(self._book)
            if after != self._book:
                write_whole(self._path, canonical(encode(after)[0]), 0o600)
                self._book = after
            return after

    def _read(self) -> Book:
        try:
            with self._path.open("rb") as file:
                data = file.read(MOST_BYTES)
        except FileNotFoundError:
            return Book()
        try:
            return decode(Book, parse(data, values=100_000))
        except (ValueError, TypeError) as problem:
            raise Refused(f"the provider's state {self._path} cannot be read: {problem}",
                          hint="look at the node's authorized keys before you move the file away") from problem


def write_whole(path: Path, data: bytes, mode: int) -> None:
    """All of it or nothing of it, and durable on return."""
    part = path.with_name(f".{path.name}.part")
    part.unlink(missing_ok=True)
    handle = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, mode)
    with os.fdopen(handle, "wb") as file:
        os.fchmod(handle, mode)
        file.write(data)
        file.flush()
        os.fsync(handle)
    part.replace(path)
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
