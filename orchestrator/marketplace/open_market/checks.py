"""What must hold of an offer and its signed quote before a deposit is thought of. Pure; the driver asks and we answer.

The market is an index that can lie about nothing but availability: price, hardware and windows are taken from the
quote that the provider signed, and only if it promises at least what the offer said.
"""
from __future__ import annotations

from pydantic import ValidationError

from ...domain.escrow import Quote
from ...domain.lease import Offer, Terms
from ...domain.money import USDC, Money, Rate
from ...errors import NoFunds, OfferGone
from .wire import OfferAnswer, QuoteAnswer, QuoteOrder, Spec, offer_hash, spec_hash


def offer_of(market: str, answer: OfferAnswer, gas: Money | None) -> Offer | None:
    """In our words; None where the specification cannot be read."""
    try:
        spec = Spec.model_validate(answer.spec)
    except ValidationError:
        return None
    return Offer(
        market=market, offer_id=answer.offer_id, rate=Rate(Money(int(answer.price_per_hour), USDC)),
        claim=spec.claim(), max_seconds=answer.max_seconds, fee_bps=answer.fee_bps, gas=gas,
        reliability=answer.reliability, provider=answer.provider, simulated=spec.simulated,
    )


def still_good(chosen: Offer, now: Offer | None) -> Offer:
    """The offer as it stands, if it is still what was chosen. OfferGone otherwise."""
    if now is None:
        raise OfferGone(f"offer {chosen.offer_id} is gone", hint="sealtune offers")
    if now.rate.per_hour.units > chosen.rate.per_hour.units:
        raise OfferGone(f"offer {chosen.offer_id} now costs {now.rate}, not {chosen.rate}", hint="sealtune offers")
    if (now.claim, now.provider, now.simulated) != (chosen.claim, chosen.provider, chosen.simulated):
        raise OfferGone(f"offer {chosen.offer_id} is another machine now", hint="sealtune offers")
    if now.fee_bps > chosen.fee_bps:
        raise OfferGone(f"offer {chosen.offer_id} now takes a fee of {now.fee_bps} bps, not {chosen.fee_bps}")
    return now


def check_quote(answer: QuoteAnswer, offer: Offer, order: QuoteOrder, terms: Terms) -> Quote:
    """The signed quote, if it promises at least what the offer said. OfferGone names the first thing that differs.
    Signature and expiry are the escrow's to check."""
    quote = answer.quote.quote()
    spec = offer_of(offer.market, _as_offer(answer, offer), None)
    faults = (
        (quote.provider.lower() != offer.provider.lower(), "is signed by another provider"),
        (quote.renter.lower() != order.renter.lower(), "is made out to another renter"),
        (quote.offerId != offer_hash(offer.offer_id), "is for another offer"),
        (quote.specHash != spec_hash(answer.spec), "does not bind the specification that was served with it"),
        (spec is None or spec.claim != offer.claim or spec.simulated != offer.simulated, "is for other hardware"),
        (quote.pricePerHour > offer.rate.per_hour.units, f"asks {quote.pricePerHour} units per hour"),
        (quote.feeBps > offer.fee_bps, f"takes a fee of {quote.feeBps} bps"),
        (quote.maxSeconds < offer.max_seconds, f"ends after {quote.maxSeconds} s"),
        (quote.startWindow < 30, f"leaves {quote.startWindow} s to start"),
        (quote.inspectionSeconds < terms.check_seconds,
         f"leaves {quote.inspectionSeconds} s to inspect, {terms.check_seconds} s are needed"),
    )
    for wrong, text in faults:
        if wrong:
            raise OfferGone(f"the quote for offer {offer.offer_id} {text}", hint="sealtune offers")
    return quote


def _as_offer(answer: QuoteAnswer, offer: Offer) -> OfferAnswer:
    return OfferAnswer(offer_id=offer.offer_id, provider=answer.quote.provider, spec=answer.spec,
                       price_per_hour=answer.quote.pricePerHour, max_seconds=answer.quote.maxSeconds,
                       inspection_seconds=answer.quote.inspectionSeconds)


def seconds_to_fund(terms: Terms, least: int, most: int) -> int:
    """The first slice, moved into the offer's bounds. What is not used comes back at the end."""
    if most < 1:
        raise OfferGone("the offer rents for no time at all")
    return min(max(terms.seconds, least), most)


def affordable(rate: Rate, seconds: int, terms: Terms) -> Money:
    """The deposit. NoFunds when it is above what the run may pay."""
    deposit = rate.ahead(seconds)
    if not terms.pay_at_most.covers(deposit):
        raise NoFunds(f"a deposit of {deposit} for {seconds} s is above the {terms.pay_at_most} that are left",
                      hint="raise `budget:` in the run file")
    return deposit
