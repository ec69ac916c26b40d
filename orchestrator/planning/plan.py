"""What a run may cost: from an offer, the wanted hours and the budget to the sum the person confirms. Pure."""
from __future__ import annotations

from ..domain.document import digest_of
from ..domain.lease import Offer
from ..domain.money import Money
from ..domain.names import Digest, lasting
from ..domain.training import Agreement
from ..errors import Refused

AUTO_SECONDS = 2 * 3600                  # `hours: auto` without a budget
LEAST_SECONDS = 1200                     # connecting, installing, wiping and ending need this much
SLICE_SECONDS = 3600                     # how far ahead we pay
CHECK_SECONDS = 600                      # planned install plus challenge, held against the inspection window


def agreement(offer: Offer, seconds: int | None, budget: Money | None) -> Agreement:
    """The worst case of renting like this offer. Refused when the budget does not reach or the time is too short."""
    total = planned_seconds(offer, seconds, budget)
    worst = offer.rate.ahead(total)
    if budget is not None and not budget.covers(worst):
        raise Refused(f"budget {budget} is below {lasting(total)} of the cheapest fitting offer: {worst}",
                      hint="raise `budget:` or lower `hours:` in the run file")
    ahead = min(total, SLICE_SECONDS)
    fee = Money(worst.units * offer.fee_bps // 10_000, worst.currency)
    return Agreement(offer.market, describe(offer), offer.rate, total, ahead, offer.rate.ahead(ahead), fee, offer.gas, worst,
                     offer.stranger, offer.bounded, offer.simulated, Digest(digest_of(offer)), offer.where)


def planned_seconds(offer: Offer, seconds: int | None, budget: Money | None) -> int:
    if seconds is not None and seconds > offer.max_seconds:
        raise Refused(f"{lasting(seconds)} wanted, {offer.offer_id} allows {lasting(offer.max_seconds)}",
                      hint="lower `hours:` in the run file")
    if seconds is None:
        seconds = offer.rate.affordable(budget) if budget is not None else AUTO_SECONDS
        seconds = min(seconds, offer.max_seconds, 24 * 3600)
    if seconds < LEAST_SECONDS:
        raise Refused(f"{lasting(seconds)} of {offer.offer_id} at {offer.rate}: too short for a run",
                      hint=f"allow at least {lasting(LEAST_SECONDS)}, {offer.rate.ahead(LEAST_SECONDS)}")
    return seconds


def describe(offer: Offer) -> str:
    """One line for people."""
    if offer.claim is None:
        return ", ".join(filter(None, ("your own server", offer.shown)))
    claim = offer.claim
    count = f"{claim.count} × " if claim.count > 1 else ""
    return f"{count}{claim.gpu}, {round(claim.vram_mib / 1024)} GiB, offer {offer.offer_id}"
