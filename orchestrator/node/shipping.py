"""Files up to the node, in parts: only those it does not have, over several connections, resumable at any moment.

What a part is and what it should hash to comes with the spool; the node's word is compared with it at the end. It must
not know what is in the files.
"""
from __future__ import annotations

import hashlib
import threading
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path

from ..domain.names import Digest
from ..domain.spool import PART_BYTES, Spool
from ..errors import NodeLost, SealtuneError
from .channel import Refusal
from .client import Agent
from .lane import Lane

LANES = 4                                # the portable cure for lossy and long lines
ASK_AT_ONCE = 256                        # digests in one request
SECONDS = 24 * 3600
ReadPart = Callable[[int], bytes]


def ship(lane: Lane, spool: Spool) -> Digest:
    """The node's digest of the whole, equal to the spool's. Raises NodeLost, Refusal."""
    return send_file(lane, spool.name, spool.sha256, spool.size, spool.parts, partial(read_part, spool.path))


def ship_bytes(lane: Lane, name: str, data: bytes) -> Digest:
    """A small file out of memory: the payload archive."""
    pieces = [data[i:i + PART_BYTES] for i in range(0, len(data), PART_BYTES)] or [b""]
    digests = tuple(_sha256(p) for p in pieces)
    return send_file(lane, name, _sha256(data), len(data), digests, lambda index: pieces[index])


def send_file(lane: Lane, name: str, whole: Digest, size: int, parts: tuple[Digest, ...], read: ReadPart) -> Digest:
    for attempt in (1, 2):
        _send_missing(lane, name, _missing(lane, name, size, parts), read)
        try:
            answer = lane.within(lambda agent: agent.close(name, whole, size), SECONDS)
        except Refusal as refusal:
            if refusal.code != "digest" or attempt == 2:
                raise
            lane.within(lambda agent: agent.discard(name), SECONDS)
            continue
        if answer != whole:
            raise NodeLost(f"{name} arrived as {answer}")
        return answer
    raise AssertionError("unreachable")


def _missing(lane: Lane, name: str, size: int, parts: tuple[Digest, ...]) -> list[int]:
    have: set[int] = set()
    for first in range(0, len(parts), ASK_AT_ONCE):
        some = parts[first:first + ASK_AT_ONCE]
        have |= lane.within(partial(_ask_for, name, size, len(parts), first, some), SECONDS)
    return [index for index in range(len(parts)) if index not in have]


def _ask_for(name: str, size: int, of: int, first: int, digests: tuple[Digest, ...], agent: Agent) -> set[int]:
    return agent.parts(name, size, of, first, digests)


def _put(name: str, index: int, read: ReadPart, agent: Agent) -> None:
    agent.put(name, index, read(index))


def _send_missing(lane: Lane, name: str, missing: list[int], read: ReadPart) -> None:
    if len(missing) <= 1:
        for index in missing:
            lane.within(partial(_put, name, index, read), SECONDS)
        return
    _Crew(lane, name, missing, read).work()


class _Crew:
    """Several lanes that take parts from one queue; a part whose lane broke goes back."""

    def __init__(self, lane: Lane, name: str, missing: list[int], read: ReadPart) -> None:
        self._name, self._read = name, read
        self._queue = deque(missing)
        self._failures: list[BaseException] = []
        self._lanes = [lane.beside() for _ in range(min(LANES, len(missing)))]

    def work(self) -> None:
        threads = [threading.Thread(target=self._carry, args=(lane,), name="ship", daemon=True) for lane in self._lanes]
        for thread in threads:
            thread.start()
        try:
            for thread in threads:
                while thread.is_alive():
                    thread.join(0.2)     # short, so that Ctrl-C is heard
        finally:
            for lane in self._lanes:
                lane.close()
        if self._queue or self._failures:
            raise self._failures[0] if self._failures else NodeLost("parts could not be sent")

    def _carry(self, lane: Lane) -> None:
        while not self._failures:
            try:
                index = self._queue.popleft()
            except IndexError:
                return
            try:
                lane.within(partial(_put, self._name, index, self._read), SECONDS)
            except (Refusal, SealtuneError, OSError) as error:
                self._failures.append(error)
                self._queue.appendleft(index)
                return


def read_part(path: Path, index: int) -> bytes:
    with path.open("rb") as file:
        file.seek(index * PART_BYTES)
        return file.read(PART_BYTES)


def _sha256(data: bytes) -> Digest:
    return Digest("sha256:" + hashlib.sha256(data).hexdigest())
