"""The chain's clock and ours. The contract decides by the timestamps of blocks; the story thinks in this laptop's time.

A chain without traffic makes no blocks, so its newest timestamp lags: up to SLACK that is taken for rest, not for
another clock. Steps of GRAIN keep a target the same while block times jitter, so that a repeated hold extends nothing.
Where rounding is needed, a deadline comes out too early, never too late.
"""
from __future__ import annotations

from dataclasses import dataclass

from ...domain.names import Instant

SLACK = 60
GRAIN = 15


@dataclass(frozen=True, slots=True)
class ChainTime:
    """`ahead`: seconds by which the chain's clock is ahead of ours."""

    ahead: int

    @classmethod
    def read(cls, chain: int, ours: int) -> ChainTime:
        lead = chain - ours
        if -SLACK <= lead <= GRAIN // 3:
            return cls(0)
        return cls(-(-lead // GRAIN) * GRAIN)

    def ours(self, chain: int) -> Instant:
        return Instant(chain - self.ahead)

    def chain(self, ours: int) -> int:
        return ours + self.ahead
