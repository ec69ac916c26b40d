"""The trainer as the keeper's child: started once, fed the secret, read, held to its limits, ended.

It runs in a session of its own, without our descriptors, and dies with the keeper. Its standard error goes nowhere:
free text never leaves the node. The secret goes into its standard input and is overwritten here.
"""
from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import time
from pathlib import Path
from typing import NamedTuple

from remote_payload import status
from remote_payload.records import Book
from remote_payload.workspace import GET_NAME, Workspace

PARENT_DEATH = 1                         # prctl PR_SET_PDEATHSIG
DONE, STOPPED = 0, 3                     # exit codes of the job
GRACE = 30
PASSED_ON = ("PATH", "LD_LIBRARY_PATH", "CUDA_VISIBLE_DEVICES", "NVIDIA_VISIBLE_DEVICES")
READ = 1 << 16
LIBC = ctypes.CDLL(None)                 # loaded before any fork


class Order(NamedTuple):
    """What the agent has checked and the keeper is to start. Names only; places are made here."""

    job_id: str
    verb: str                            # train | rehearse
    environment: str                     # env-<lock digest16>
    commit: str
    checkpoint: bool
    seconds: int
    records: int
    artifact_bytes: int


def command(place: Workspace, order: Order) -> list[str]:
    words = [str(place.public / order.environment / "bin" / "python"), "-I", str(place.private / "payload.zip"),
             order.verb, "--spec", str(place.private / "spec.json"), "--data", str(place.private / "dataset.age"),
             "--base", str(place.models / order.commit), "--out", str(place.job)]
    return words + (["--checkpoint", str(place.private / "checkpoint-in.age")] if order.checkpoint else [])


def environment(place: Workspace) -> dict[str, str]:
    passed = {name: os.environ[name] for name in PASSED_ON if name in os.environ}
    here = {name: str(place.scratch) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    return {"PATH": "/usr/bin:/bin", **passed, **here, "LC_ALL": "C.UTF-8"}


def die_with_parent() -> None:
    """Runs in the child before its program: nothing that we start outlives us."""
    LIBC.prctl(PARENT_DEATH, signal.SIGKILL, 0, 0, 0)


class Trainer:
    """One job from its start to its status.json."""

    def __init__(self, place: Workspace, order: Order, secret: bytearray) -> None:
        self.place, self.order = place, order
        self.book = Book(place, order.records)
        self.how = ""
        self._why = ""                   # why we are ending it: stopped | deadline | failed
        self._kill_at = 0.0
        self._deadline = time.monotonic() + order.seconds
        self.process = self._launch(secret)

    def _launch(self, secret: bytearray) -> subprocess.Popen[bytes] | None:
        try:
            process = subprocess.Popen(
                command(self.place, self.order), stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, cwd=self.place.scratch, env=environment(self.place), bufsize=0,
                start_new_session=True, close_fds=True, preexec_fn=die_with_parent)
        except OSError:
            secret[:] = bytes(len(secret))
            self.book.error("LaunchFailed")
            self._end("failed", 127)
            return None
        assert process.stdin is not None and process.stdout is not None
        try:
            process.stdin.write(secret)  # less than a pipe holds, so it does not wait
            process.stdin.close()
        except OSError:
            pass                         # it died at once; its end will be seen
        finally:
            secret[:] = bytes(len(secret))
        os.set_blocking(process.stdout.fileno(), False)
        return process

    @property
    def running(self) -> bool:
        return not self.how

    def descriptor(self) -> int | None:
        """The trainer's standard output, to be waited on while it runs."""
        alive = self.process is not None and self.process.stdout is not None and not self.process.stdout.closed
        return self.process.stdout.fileno() if alive and self.process and self.process.stdout else None

    def stop(self, why: str, grace: int) -> None:
        """TERM now, KILL after `grace` seconds. A later call can only bring the KILL forward."""
        if not self.running:
            return
        kill_at = time.monotonic() + grace
        if not self._why:
            self._why, self._kill_at = why, kill_at
            self._signal(signal.SIGTERM)
        self._kill_at = min(self._kill_at, kill_at)

    def tick(self) -> None:
        """Reads what came, holds the limits, notices the end. Never blocks."""
        if not self.running or self.process is None:
            return
        self._read(1)
        now = time.monotonic()
        if now > self._deadline:
            self.stop("deadline", GRACE)
        if self._why and now > self._kill_at:
            self._signal(signal.SIGKILL)
        self._hold_limits()
        code = self.process.poll()
        if code is not None:
            self._signal(signal.SIGKILL)  # what it may have left in its group
            self._read(1024)
            self._settle(code)

    def _read(self, most: int) -> None:
        fd = self.descriptor()
        for _ in range(most if fd is not None else 0):
            try:
                data = os.read(fd, READ)  # type: ignore[arg-type]
            except (BlockingIOError, InterruptedError):
                return
            if not data:
                assert self.process is not None and self.process.stdout is not None
                self.process.stdout.close()
                return
            self.book.feed(data)

    def _hold_limits(self) -> None:
        if self._why:
            return
        if self.book.full:
            self._break_off("RecordLimit")
        elif any(size > self.order.artifact_bytes for size in sizes(self.place.job)):
            self._break_off("ArtifactLimit")

    def _break_off(self, kind: str) -> None:
        self.book.error(kind)
        self.stop("failed", 0)

    def _settle(self, code: int) -> None:
        if code == DONE and self._why != "failed":
            how = "done"
        elif self._why:
            how = self._why
        else:
            how = "stopped" if code == STOPPED else "failed"
        if how == "failed" and code < 0 and not self._why:
            self.book.error(f"Signal{-code}")
        self._end(how, code)

    def _end(self, how: str, code: int) -> None:
        self.how = how
        with contextlib.suppress(OSError):  # a full disk: without its file the end counts as lost, never as success
            self.book.close()
            status.finish(self.place, how, code)

    def _signal(self, number: int) -> None:
        if self.process is not None:
            with contextlib.suppress(OSError):  # nobody left to hear it
                os.killpg(self.process.pid, number)


def sizes(folder: Path) -> list[int]:
    """Sizes of the files that the job publishes or is about to publish."""
    found = []
    for path in folder.iterdir():
        if GET_NAME.fullmatch(path.name[:-5] if path.name.endswith(".part") else path.name):
            try:
                found.append(path.lstat().st_size)
            except OSError:
                continue                 # renamed while we looked
    return found
