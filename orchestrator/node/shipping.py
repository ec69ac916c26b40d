"""Files up to the node, in parts: only those it does not have, over several connections, resumable at any moment.

What a part is and what it should hash to comes with the spool; the node's word is compared with it at the end. A file
has so long as the slowest useful line would need, and no longer: the node cannot hold us with an upload. It must not
know what is in the files.
"""
from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from ..domain.document import sha256
from ..domain.names import Digest
from ..domain.spool import PART_BYTES, Spool
from ..errors import NodeLost, SealtuneError
from .channel import Refusal
from .client import Agent
from .lane import Lane

LANES = 4                                # the portable cure for lossy and long lines
ASK_AT_ONCE = 256                        # digests in one request
FLOOR = 64 * 1024                        # bytes a second: a slower line is of no use
BESIDE = 600                             # seconds for everything but the bytes themselves
ReadPart = Callable[[int], bytes]
T = TypeVar("T")


def seconds_for(size: int) -> int:
    """How long a file of `size` bytes may take, whatever the node does."""
    return BESIDE + size // FLOOR


def ship(lane: Lane, spool: Spool) -> Digest:
    """The node's digest of the whole, equal to the spool's. Raises NodeLost, Refusal. ≤ seconds_for(size)."""
    return _send_file(_Upload(lane, spool.name, spool.size, spool.parts, partial(read_part, spool.path)), spool.sha256)


def ship_bytes(lane: Lane, name: str, data: bytes) -> Digest:
    """A small file out of memory: the payload archive."""
    pieces = [data[i:i + PART_BYTES] for i in range(0, len(data), PART_BYTES)] or [b""]
    return _send_file(_Upload(lane, name, len(data), tuple(map(sha256, pieces)), lambda index: pieces[index]), sha256(data))


class _Upload:
    """One file on its way. All of its verbs share one end."""

    def __init__(self, lane: Lane, name: str, size: int, parts: tuple[Digest, ...], read: ReadPart) -> None:
        self.lane, self.name, self.size, self.parts, self._read = lane, name, size, parts, read
        self._ends = time.monotonic() + seconds_for(size)

    def within(self, call: Callable[[Agent], T], lane: Lane | None = None) -> T:
        return (lane or self.lane).within(call, max(0.0, self._ends - time.monotonic()))

    def missing(self) -> list[int]:
        """Indexes of the parts that the node does not have."""
        have: set[int] = set()
        for first in range(0, len(self.parts), ASK_AT_ONCE):
            have |= self.within(partial(self._ask_for, first))
        return [index for index in range(len(self.parts)) if index not in have]

    def _ask_for(self, first: int, agent: Agent) -> set[int]:
        some = self.parts[first:first + ASK_AT_ONCE]
        return agent.parts(self.name, self.size, len(self.parts), first, some)

    def put(self, index: int, lane: Lane) -> None:
        part = self._read(index)
        self.within(lambda agent: agent.put(self.name, index, part), lane)


def _send_file(upload: _Upload, whole: Digest) -> Digest:
    for attempt in (1, 2):
        _send_missing(upload, upload.missing())
        try:
            answer = upload.within(lambda agent: agent.close(upload.name, whole, upload.size))
        except Refusal as refusal:
            if refusal.code != "digest" or attempt == 2:
                raise
            upload.within(lambda agent: agent.discard(upload.name))
            continue
        if answer != whole:
            raise NodeLost(f"{upload.name} arrived as {answer}")
        return answer
    raise AssertionError("unreachable")


def _send_missing(upload: _Upload, missing: list[int]) -> None:
    if len(missing) > 1:
        return _Crew(upload, missing).work()
    for index in missing:
        upload.put(index, upload.lane)


class _Crew:
    """Several lanes that take parts from one queue; a part whose lane broke goes back."""

    def __init__(self, upload: _Upload, missing: list[int]) -> None:
        self._upload, self._queue = upload, deque(missing)
        self._failures: list[BaseException] = []
        self._lanes = [upload.lane.beside() for _ in range(min(LANES, len(missing)))]

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
                self._upload.put(index, lane)
            except (Refusal, SealtuneError, OSError) as error:
                self._failures.append(error)
                self._queue.appendleft(index)
                return


def read_part(path: Path, index: int) -> bytes:
    with path.open("rb") as file:
        file.seek(index * PART_BYTES)
        return file.read(PART_BYTES)
