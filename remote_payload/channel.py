"""The agent's end of the channel: frames out, one at a time, and a sign of life while a long request is worked on."""
from __future__ import annotations

import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from remote_payload import frames
from remote_payload.frames import BadFrame, Frame
from remote_payload.workspace import Tell

EVERY = 3.0                              # seconds between signs of life; the laptop gives up after 15 or more
AT_MOST = 1.0                            # and no more often than this


class Channel:
    """Reads from one descriptor, writes to another. A peer that is gone ends this process, whatever it does."""

    def __init__(self, source: int, target: int) -> None:
        self._take, self._target = frames.taker(source), target
        self._lock = threading.Lock()
        self._state = (0, 0, "working")
        self._told_at = 0.0

    def read(self) -> Frame | None:
        """The next request; None at the end. BadFrame ends the channel."""
        asked = frames.read(self._take)
        if asked is not None and asked.type != frames.VERBS["put"] and len(asked.body) > frames.BODY_MAX_DOWN:
            raise BadFrame("frame is too large")
        return asked

    def send(self, frame: Frame) -> None:
        with self._lock:
            try:
                frames.send(self._target, frame)
            except OSError:
                os._exit(1)              # children die with us

    @contextmanager
    def working(self) -> Iterator[Tell]:
        """Gives `tell`. While the block runs, a thread says that we live, also when the work itself is silent."""
        over = threading.Event()
        pulse = threading.Thread(target=self._pulse, args=(over,), daemon=True)
        self._state, self._told_at = (0, 0, "working"), time.monotonic()
        pulse.start()
        try:
            yield self._tell
        finally:
            over.set()
            pulse.join()

    def _tell(self, done: int, of: int, what: str) -> None:
        self._state = (done, of, what)
        if time.monotonic() - self._told_at >= AT_MOST:
            self._progress()

    def _pulse(self, over: threading.Event) -> None:
        while not over.wait(0.5):
            if time.monotonic() - self._told_at >= EVERY:
                self._progress()

    def _progress(self) -> None:
        self._told_at = time.monotonic()
        done, of, what = self._state
        self.send(Frame(frames.PROGRESS, {"done": done, "of": of, "what": what}))
