"""A clock that stands still until it is told: sleeping moves it."""
from __future__ import annotations

from orchestrator.domain.names import Instant


class StoppedClock:
    def __init__(self, now: int = 1_800_000_000) -> None:
        self.time = now

    def now(self) -> Instant:
        return Instant(self.time)

    def sleep(self, seconds: int) -> None:
        self.time += seconds
