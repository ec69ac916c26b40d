"""What a transaction offers for its place in a block: base fee, tip, and the next bid when it was too low. Pure but for
one question to the node."""
from __future__ import annotations

import statistics
from dataclasses import dataclass

from .rpc import Rpc

GWEI = 10**9
MOST_TIPS = 20                           # times the usual one: more is paid to nobody, whatever a node calls usual
POLYGON, LAB = (137, 80002), 31337


@dataclass(frozen=True, slots=True)
class Policy:
    """How a chain is dealt with. Wei."""

    least_tip: int                       # nodes drop what offers less
    usual_tip: int
    depth: int                           # blocks on top before a nonce counts as gone for good


@dataclass(frozen=True, slots=True)
class Fees:
    """A bid. Wei per gas."""

    tip: int
    most: int                            # base fee included


def policy_for(chain_id: int) -> Policy:
    """Polygon's nodes demand 25 gwei and many suggest 30. A lab mines at once and forgets nothing."""
    if chain_id in POLYGON:
        return Policy(25 * GWEI, 30 * GWEI, 16)
    return Policy(0, GWEI, 0 if chain_id == LAB else 16)


def today(rpc: Rpc, policy: Policy) -> tuple[Fees, int]:
    """(the bid for now, the next block's base fee)."""
    base, tips = rpc.tips(10)
    tip = max(policy.usual_tip, min(int(statistics.median(tips)) if tips else 0, MOST_TIPS * policy.usual_tip))
    return Fees(tip, 2 * base + tip), base


def outbid(old: Fees, now: Fees) -> Fees:
    """A replacement that every node takes: an eighth more on both, and never less than today's bid."""
    return Fees(max(now.tip, old.tip + old.tip // 8 + 1), max(now.most, old.most + old.most // 8 + 1))


def hopeless(old: Fees, now: Fees, base: int, policy: Policy) -> bool:
    """Whether a waiting bid cannot be taken any more, or others pay clearly more."""
    return old.most < base + policy.least_tip or old.tip < policy.least_tip or now.tip * 8 > old.tip * 9
