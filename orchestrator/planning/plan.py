"""What a run may cost: from an offer, the wanted hours and the budget to the sum the person confirms. Pure."""
from __future__ import annotations

from ..domain.document import digest_of
from ..domain.lease import Offer
from ..domain.money import Money
from ..domain.names import Digest, lasting
from ..domain.training import Agreement, Forecast
from ..errors import Refused

AUTO_SECONDS = 2 * 3600                  # `hours: auto` without a budget, and the least that it allows by a plan
LEAST_SECONDS = 1200                     # connecting, installing, wiping and ending need this much
SLICE_SECONDS = 3600                     # how far ahead we pay
CHECK_SECONDS = 600                      # planned install plus challenge, held against the inspection window
MOST_SECONDS = 24 * 3600
ROUNDED = 300


def agreement(offer: Offer, seconds: int | None, budget: Money | None, forecast: Forecast | None = None) -> Agreement:
    """The worst case of renting like this offer. Refused when the budget does not reach or the time is too short; by the
    plan, too, when even its low figure does not fit."""
    total = planned_seconds(offer, seconds, budget, forecast)
    worst = offer.rate.ahead(total)
    if budget is not None and not budget.covers(worst):
        raise Refused(f"budget {budget} is below {lasting(total)} of the cheapest fitting offer: {worst}",
                      hint="raise `budget:` or lower `hours:` in the run file")
    ahead = min(total, SLICE_SECONDS)
    fee = Money(worst.units * offer.fee_bps // 10_000, worst.currency)
    return Agreement(offer.market, describe(offer), offer.rate, total, ahead, offer.rate.ahead(ahead), fee, offer.gas, worst,
                     offer.stranger, offer.bounded, offer.simulated, Digest(digest_of(offer)), offer.where, forecast)


def planned_seconds(offer: Offer, seconds: int | None, budget: Money | None, forecast: Forecast | None = None) -> int:
    """`hours:` as it was written; `auto`: by the plan, or without one as far as the budget reaches."""
    if seconds is not None and seconds > offer.max_seconds:
        raise Refused(f"{lasting(seconds)} wanted, {offer.offer_id} allows {lasting(offer.max_seconds)}",
                      hint="lower `hours:` in the run file")
    if seconds is None:
        most = min(offer.rate.affordable(budget) if budget is not None else MOST_SECONDS, offer.max_seconds, MOST_SECONDS)
        seconds = min(most, _by_plan(forecast) or (most if budget is not None else AUTO_SECONDS))
    if seconds < LEAST_SECONDS:
        raise Refused(f"{lasting(seconds)} of {offer.offer_id} at {offer.rate}: too short for a run",
                      hint=f"allow at least {lasting(LEAST_SECONDS)}, {offer.rate.ahead(LEAST_SECONDS)}")
    _must_be_enough(offer, seconds, forecast)
    return seconds


def _by_plan(forecast: Forecast | None) -> int:
    """Twice the high figure, rounded up, two hours at least; 0 where the plan does not know. What is not used comes back,
    while a job that is stopped by too small a bound has cost its time for nothing."""
    high = forecast.seconds[2] if forecast else 0
    return max(AUTO_SECONDS, -(-2 * high // ROUNDED) * ROUNDED) if high else 0


def _must_be_enough(offer: Offer, seconds: int, forecast: Forecast | None) -> None:
    if forecast is None or forecast.seconds[0] <= seconds:
        return
    low, expected, high = forecast.seconds
    raise Refused(f"{lasting(seconds)} of {offer.offer_id} at {offer.rate}: the run takes at least {lasting(low)} there, "
                  f"about {lasting(expected)}",
                  hint=f"allow {lasting(high)}, {offer.rate.ahead(high)}; or train on fewer rows, or less often")


def describe(offer: Offer) -> str:
    """One line for people."""
    if offer.claim is None:
        return ", ".join(filter(None, ("your own server", offer.shown)))
    claim = offer.claim
    count = f"{claim.count} × " if claim.count > 1 else ""
    return f"{count}{claim.gpu}, {round(claim.vram_mib / 1024)} GiB, offer {offer.offer_id}"
