"""A job's records and sealed files, mirrored home while it runs: over cuts, restarts and sleeps of this laptop.

Two workers, each with a connection of its own: one asks for records, one brings published files, so that a large file
never delays a line. What they bring is checked, written and yielded by the caller's thread, in order. No cursor is
kept but what lies in `home`. It must not decide when a node is lost: it reconnects for ever and counts the silence.
"""
from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

from ..domain.document import sha256_of
from ..domain.names import Digest
from ..domain.progress import Arrived, BadRecords, Finished, Published, Record, Seen, Tick
from ..domain.training import Job
from ..errors import HostKeyChanged, LeaveNode, SealtuneError
from .channel import Refusal
from .client import Agent, Block
from .frames import BODY_MAX_DOWN
from .lane import FOREVER, Lane
from .recordfile import RecordFile, published

TICK, WAIT = 1.0, 2                      # seconds: a tick at least so often; how long the node may hold a question
SPARE_LINES = 128                        # beside the job's records the keeper writes as many of the GPU's, and a few own
TRIES = 3                                # for one published file that does not verify
Beat = Callable[[], "dict[str, int] | None"]


class Mirror:
    """One pass of following one job into one folder. `beat` gives the newest deadline, or None, for every question."""

    def __init__(self, lane: Lane, job: Job, home: Path, beat: Beat) -> None:
        self._job, self._home, self._beat = job, home, beat
        self._asking, self._bringing = lane.beside(FOREVER), lane.beside(FOREVER)
        self._came: queue.Queue[Block | Arrived | Exception] = queue.Queue(maxsize=8)
        self._wanted: queue.Queue[Published | None] = queue.Queue()
        self._open = 0                   # files that were announced and are neither home nor given up
        self._counting, self._newest = threading.Lock(), ""
        self._over = threading.Event()
        self._asked_at = 0

    def follow(self, until: float = FOREVER) -> Iterator[Seen]:
        """See ports.Jobs.follow. `until`: monotonic time at which to stop waiting, for `stop`."""
        records = RecordFile(self._home, 2 * self._job.spec.limits.records + SPARE_LINES)
        workers = [threading.Thread(target=work, name=name, daemon=True)
                   for name, work in (("records", self._ask), ("files", self._bring))]
        try:
            self._asked_at = records.offset
            yield from self._resumed(records)
            for worker in workers:
                worker.start()
            yield from self._watch(records, until)
        finally:
            self._stop(workers)
            records.close()

    def _stop(self, workers: list[threading.Thread]) -> None:
        self._over.set()
        self._wanted.put(None)
        self._asking.close()
        self._bringing.close()
        while not self._came.empty():    # a worker may be waiting for room
            self._came.get_nowait()
        for worker in workers:
            if worker.is_alive():
                worker.join(5)

    def _resumed(self, records: RecordFile) -> Iterator[Seen]:
        """Files that were announced to an earlier session: said again when they are home, fetched when not."""
        for record in records.known():
            file = self._announced(record)
            if file and self._at_home(file):
                yield Arrived(file)
            elif file:
                self._want(file)

    def _watch(self, records: RecordFile, until: float) -> Iterator[Seen]:
        ticked, how = time.monotonic(), ""
        while True:
            came = self._next(ticked + TICK)
            if isinstance(came, Exception):
                raise came
            if isinstance(came, Arrived):
                yield came
            if isinstance(came, Block):
                try:
                    yield from self._take(records, came)
                except BadRecords as error:
                    yield Finished("failed", str(error))
                    return
                how = came.how if came.complete and came.how else how
            if how and not self._open and self._came.empty():
                yield Finished(how, records.error)
                return
            if time.monotonic() >= until:
                yield Finished(how or "lost", records.error)
                return
            if time.monotonic() >= ticked + TICK:
                ticked = time.monotonic()
                yield Tick(self.silent_for)

    @property
    def silent_for(self) -> int:
        """Awake seconds since the node was last heard on either line."""
        return int(time.monotonic() - max(self._asking.heard, self._bringing.heard))

    def _next(self, until: float) -> Block | Arrived | Exception | None:
        try:
            return self._came.get(timeout=max(0.01, until - time.monotonic()))
        except queue.Empty:
            return None

    def _take(self, records: RecordFile, block: Block) -> Iterator[Record]:
        for record in records.add(block.lines):
            if file := self._announced(record):
                self._want(file)
            yield record

    def _announced(self, record: Record) -> Published | None:
        return published(record, self._job.spec.limits.artifact_bytes)

    def _want(self, file: Published) -> None:
        if file.name.startswith("checkpoint-"):
            self._newest = file.name
        self._count(1)
        self._wanted.put(file)

    def _count(self, change: int) -> None:
        with self._counting:
            self._open += change

    def _at_home(self, file: Published) -> bool:
        path = self._home / file.name
        return path.is_file() and path.stat().st_size == file.size and hash_of(path) == file.sha256

    # ---- workers ------------------------------------------------------------------------------------------

    def _hand_over(self, what: Block | Arrived | Exception) -> None:
        while not self._over.is_set():
            try:
                return self._came.put(what, timeout=0.2)
            except queue.Full:
                continue

    def _ask(self) -> None:
        """Ask for records until the last one is here."""
        while not self._over.is_set():
            try:
                block = self._asking.within(self._question)
            except Refusal as refusal:
                block = Block(b"", self._asked_at, "lost" if refusal.code == "unknown-job" else "", True)
            except HostKeyChanged as error:
                self._hand_over(error)
                break
            except SealtuneError:        # no agent on the node just now; the silence says the rest
                self._over.wait(5)
                continue
            self._asked_at = block.offset
            if block.lines or block.how:
                self._hand_over(block)
            if block.how and block.complete:
                break
            if not block.lines:
                self._over.wait(0.2)

    def _question(self, agent: Agent) -> Block:
        return agent.records(self._job.job_id, self._asked_at, WAIT, self._beat())

    def _bring(self) -> None:
        while (file := self._wanted.get()) is not None and not self._over.is_set():
            try:
                if self._still_wanted(file) and self._fetch(file):
                    self._hand_over(Arrived(file))
            except (HostKeyChanged, OSError) as error:
                self._hand_over(error)
            except LeaveNode:            # closed, or the node breaks the rules again and again: this file is given up
                continue
            finally:
                self._count(-1)

    def _still_wanted(self, file: Published) -> bool:
        """A checkpoint that waited while a newer one was announced has no use any more."""
        return not file.name.startswith("checkpoint-") or file.name == self._newest

    def _fetch(self, file: Published) -> bool:
        """False where the node does not have it any more, or never the bytes it announced."""
        if self._at_home(file):
            return True
        part = self._home / (file.name + ".part")
        for _ in range(TRIES):
            try:
                complete = self._pull(file, part)
            except Refusal:
                return False
            if complete and hash_of(part) == file.sha256:
                part.replace(self._home / file.name)
                return True
            if self._over.is_set():      # the next session goes on with this part
                return False
            part.unlink(missing_ok=True)
        return False

    def _pull(self, file: Published, part: Path) -> bool:
        """Append what is missing to `part`; never more than was announced."""
        fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            size = os.fstat(fd).st_size
            while size < file.size and not self._over.is_set():
                piece = self._bringing.within(partial(_piece, file.name, size))
                if len(piece) != min(BODY_MAX_DOWN, file.size - size):   # a published file has all its bytes
                    return False
                os.write(fd, piece)
                size += len(piece)
            os.fsync(fd)
            return size == file.size
        finally:
            os.close(fd)


def _piece(name: str, offset: int, agent: Agent) -> bytes:
    return agent.get(name, offset)


def hash_of(path: Path) -> Digest:
    with path.open("rb") as file:
        return sha256_of(file)
