"""Small named types, so that a lease key is never taken for a lease id. Values only: no behaviour, no I/O."""
from __future__ import annotations

from datetime import UTC, datetime
from enum import StrEnum
from typing import NewType

RunId = NewType("RunId", str)
LeaseKey = NewType("LeaseKey", str)      # ours, chosen before the world knows: idempotency key, salt, tag; 64 hex
LeaseId = NewType("LeaseId", str)        # the market's or the contract's
Digest = NewType("Digest", str)          # "sha256:…"
Instant = NewType("Instant", int)        # seconds since 1970, UTC


def when(instant: Instant) -> str:
    """For people: "2026-11-30 21:58 UTC"."""
    return datetime.fromtimestamp(instant, UTC).strftime("%Y-%m-%d %H:%M UTC")


def lasting(seconds: int) -> str:
    """For people: "1 hour", "2.5 hours", "6 minutes"."""
    if seconds < 3600:
        return f"{seconds // 60} minute{'' if seconds // 60 == 1 else 's'}"
    return "1 hour" if seconds == 3600 else f"{seconds / 3600:.4g} hours"


class Reason(StrEnum):
    """Why a lease was left. One word each; a run never just failed."""

    DONE = "done"
    STOPPED = "stopped by the user"
    FAILED = "run failed"
    HARDWARE = "hardware not as offered"
    NO_SHOW = "node never answered"
    NODE_LOST = "node lost"
    PROVIDER_ENDED = "provider ended early"
    LEASE_ENDED = "funded time ran out"
    BUDGET = "budget reached"
    OFFER_GONE = "offer gone"
    TOO_SLOW = "node too slow to be checked before the inspection window closes"
    HOST_KEY = "host key changed"
    UNSUITABLE = "node cannot hold the environment"
    REFUSED = "node refused"             # for a reason that asking again does not change


SPENT_OFFERS = (Reason.HARDWARE, Reason.NO_SHOW, Reason.PROVIDER_ENDED, Reason.OFFER_GONE, Reason.TOO_SLOW,
                Reason.UNSUITABLE, Reason.REFUSED)
