"""The keeper: one detached process a lease, which outlives every connection and acts when nobody comes back.

It claims the workspace (a file lock: the GPU is one lease's), holds the deadline in memory, owns the trainer, writes
the record file, and when the deadline or the silence is reached it ends the job, wipes the private parts, runs the
lease's own end and goes. It is one thread, forked from an agent; it must never need the network or the laptop.
"""
from __future__ import annotations

import ctypes
import os
import select
import subprocess
import time
from collections.abc import Callable
from typing import Any

from remote_payload import frames, link, status
from remote_payload.child import GRACE, Order, Trainer
from remote_payload.frames import BadFrame, Frame, Refused, canonical
from remote_payload.overwrite import remove_private
from remote_payload.telemetry import Gpu
from remote_payload.workspace import Workspace, boot_id, write_atomic

LINGER = 600                             # seconds for which a finished wipe's document can still be asked for
TURN = 0.25
STUBBORN = 60                            # seconds beyond the KILL for which the end of a job is waited for
SUBREAPER = 36                           # prctl PR_SET_CHILD_SUBREAPER


class Target:
    """When to act alone: seconds from now on two clocks, whichever comes first, and a limit on silence."""

    def __init__(self, seconds: int, silence: int) -> None:
        self.silence = silence
        self._until = self._until_wall = self._heard = 0.0
        self.later(seconds, silence)

    def later(self, seconds: int, silence: int) -> None:
        """A later target wins, an earlier one changes nothing; of the silence the newest value counts."""
        self._until = max(self._until, _uptime() + seconds)
        self._until_wall = max(self._until_wall, time.time() + seconds)
        self.silence = silence
        self.heard()

    def heard(self) -> None:
        self._heard = _uptime()

    @property
    def remaining(self) -> int:
        return max(0, round(min(self._until - _uptime(), self._until_wall - time.time())))

    @property
    def passed(self) -> bool:
        now = _uptime()
        return now >= self._until or time.time() >= self._until_wall or now - self._heard >= self.silence


def _uptime() -> float:
    """Seconds that also count while the machine is suspended."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


class Keeper:
    """The loop and its answers."""

    def __init__(self, place: Workspace, claim: int, seconds: int, silence: int) -> None:
        ctypes.CDLL(None).prctl(SUBREAPER, 1, 0, 0, 0)
        self.place, self.claim = place, claim
        self.target = Target(seconds, silence)
        self.self_end: list[str] = []
        self.trainer: Trainer | None = None
        self.gpu = Gpu()
        self.document: tuple[str, dict[str, Any], bytes] | None = None
        self.leave_at: float | None = None
        self.acting, self._patient_until = False, 0.0
        self.listener = link.listen(place)
        write_atomic(place.private / "keeper.json", canonical({"pid": os.getpid(), "boot_id": boot_id()}))

    def run(self) -> None:
        while self.leave_at is None or _uptime() < self.leave_at:
            if not _survived(self._wait) or not _survived(self._tend):
                time.sleep(TURN)
            if self.leave_at is None and (self.acting or self.target.passed) and self._act():
                return

    def _wait(self) -> None:
        watched: list[int] = [self.listener.fileno()]
        output = self.trainer.descriptor() if self.trainer else None
        ready, _, _ = select.select(watched + ([output] if output is not None else []), [], [], TURN)
        if watched[0] in ready:
            self._answer()

    def _tend(self) -> None:
        if self.trainer and self.trainer.running:
            self.trainer.tick()
            sample = self.gpu.tick()
            if sample and self.trainer.running:
                self.trainer.book.gpu(sample)
        else:
            _reap()

    def _act(self) -> bool:
        """The deadline has come: end the job first, then wipe, then end the lease. True when all is done.

        A job that does not even die, or a file that does not go, does not keep the lease from ending."""
        now = _uptime()
        if not self.acting:
            self.acting, self._patient_until = True, now + GRACE + STUBBORN
        if self.trainer and self.trainer.running and now < self._patient_until:
            self.trainer.stop("deadline", GRACE)
            return False
        _survived(lambda: remove_private(self.place))
        if self.self_end:
            _run_quietly(self.self_end)
        return True

    # ---- answers -------------------------------------------------------------------------------------------

    def _answer(self) -> None:
        try:
            peer, _ = self.listener.accept()
        except OSError:
            return
        with peer:
            peer.settimeout(2)
            try:
                asked = link.receive(peer) if link.ours(peer) else None
                if asked is not None:
                    peer.sendall(frames.encode(self._reply(asked), link.BODY_MAX))
            except (OSError, BadFrame, ValueError):
                return                   # an agent that went away asks again

    def _reply(self, asked: Frame) -> Frame:
        verb = frames.NAMES.get(asked.type, "")
        answers: dict[str, Callable[[Frame], Frame]] = {
            "hello": self._hello, "arm": self._arm, "start": self._start, "stop": self._stop, "wipe": self._wipe,
            "bye": self._bye}
        try:
            if verb not in answers:
                raise Refused("bad-request", "not a verb of the keeper")
            return answers[verb](asked)
        except Refused as no:
            return Frame(frames.REFUSED, {"code": no.code, "detail": no.detail})
        except Exception as error:  # noqa: BLE001  why: one request that fails must not end the watch over the lease
            return Frame(frames.REFUSED, {"code": "internal", "detail": f"keeper: {type(error).__name__}"})

    def _hello(self, asked: Frame) -> Frame:
        if asked.header.get("heard"):
            self.target.heard()
        job = None
        if self.trainer:
            state = "running" if self.trainer.running else "ended"
            job = {"id": self.trainer.order.job_id, "state": state}
        return Frame(frames.REPLY, {"until_in": self.target.remaining, "silence": self.target.silence, "job": job,
                                    "over": self.acting or self.document is not None,
                                    "finished": self.document is not None})

    def _arm(self, asked: Frame) -> Frame:
        self._refuse_if_over()
        self.target.later(asked.header["seconds"], asked.header["silence"])
        if asked.header.get("self_end") is not None:
            self.self_end = [str(word) for word in asked.header["self_end"]]
        return self._hello(asked)

    def _start(self, asked: Frame) -> Frame:
        self._refuse_if_over()
        self.target.heard()
        order = Order(**asked.header)
        mark = status.begun(self.place)
        if mark is None:
            mark = status.begin(self.place, order.job_id)
            try:
                self.trainer = Trainer(self.place, order, bytearray(asked.body))
            except OSError:              # nothing runs yet: the record file cannot even be made
                status.withdraw(self.place)
                raise Refused("no-space", "the record file cannot be written") from None
        asked.body[:] = bytes(len(asked.body))  # type: ignore[index]
        return Frame(frames.REPLY, mark)

    def _stop(self, asked: Frame) -> Frame:
        self.target.heard()
        if self.trainer:
            self.trainer.stop("stopped", asked.header["grace"])
        return Frame(frames.REPLY, {})

    def _wipe(self, asked: Frame) -> Frame:
        """Keeps a finished document (body), or gives back the one of this order."""
        if asked.body:
            self.document = (asked.header["order_id"], asked.header["reply"], bytes(asked.body))
            self.leave_at = _uptime() + LINGER
            os.ftruncate(self.claim, 0)
            os.close(self.claim)
            return Frame(frames.REPLY, {})
        if self.document is None or self.document[0] != asked.header["order_id"]:
            return Frame(frames.REPLY, {"known": False})
        return Frame(frames.REPLY, {"known": True, "reply": self.document[1]}, self.document[2])

    def _bye(self, asked: Frame) -> Frame:
        if self.document is not None:
            self.leave_at = _uptime()
        return Frame(frames.REPLY, {})

    def _refuse_if_over(self) -> None:
        if self.acting or self.document is not None:
            raise Refused("not-armed", "the keeper of this lease is ending")


def _survived(part: Callable[[], object]) -> bool:
    """One part of a turn. What breaks in it ends neither the turn nor the watch over the deadline."""
    try:
        part()
    except Exception:  # noqa: BLE001  why: whatever else breaks, the deadline is kept
        return False
    return True


def _reap() -> None:
    """Strays of the job that were handed to us."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            continue
    except OSError:
        return


def _run_quietly(words: list[str]) -> None:
    """The lease's own end. What it says is nobody's business, what it does the market sees."""
    try:
        subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
                       timeout=120, check=False)
    except (OSError, subprocess.SubprocessError):
        return
