"""Offers side by side: which fit, what they cost, which of them nobody beats. Pure.

One offer beats another when it is no worse in price, reliability and speed, and better in one. A reliability that is not
published counts as none.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from ..domain.lease import Offer, Wish
from ..domain.money import Money
from ..domain.price import Price
from ..domain.training import Forecast
from .cards import card_of
from .choose import misfit
from .fit import verdict
from .forecast import Planned, forecast, job_on, whole_of

Merits = tuple[int, int, int]


@dataclass(frozen=True, slots=True)
class Row:
    """`refused`: why it will not be taken; "" when it may be. Costs are None where the hours are not known. `best`: no other
    offer beats it."""

    offer: Offer
    forecast: Forecast
    refused: str
    cost: Money | None
    most: Money | None
    fee: Money | None                    # contained in `most`
    best: bool = False


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """The same run on a machine of the price table; seconds and costs are None where it does not fit."""

    price: Price
    verdict: str
    seconds: int | None
    cost: Money | None


def compare(run: Planned, offers: Iterable[Offer], wish: Wish) -> list[Row]:
    """Those that may be taken first; of them those that nobody beats first, then by cost, or by price where it is open."""
    least = run.least_mib
    rows = [_row(run, offer, wish, least) for offer in offers]
    front = _front(row for row in rows if not row.refused)
    ranked = [replace(row, best=not row.refused and _merits(row) in front) for row in rows]
    return sorted(ranked, key=lambda row: (bool(row.refused), not row.best, _price(row), row.offer.offer_id))


def _row(run: Planned, offer: Offer, wish: Wish, least_mib: int) -> Row:
    seen = forecast(run, offer)
    refused = misfit(offer, wish, least_mib) or _too_short(offer, seen)
    if not seen.seconds[1]:
        return Row(offer, seen, refused, None, None, None)
    cost, most = offer.rate.ahead(seen.seconds[1]), offer.rate.ahead(seen.seconds[2])
    return Row(offer, seen, refused, cost, most, Money(most.units * offer.fee_bps // 10_000, most.currency))


def _too_short(offer: Offer, seen: Forecast) -> str:
    from ..domain.names import lasting

    if seen.seconds[0] <= offer.max_seconds:
        return ""
    return f"it is let for {lasting(offer.max_seconds)}, the run takes at least {lasting(seen.seconds[0])}"


def _price(row: Row) -> int:
    return row.cost.units if row.cost else row.offer.rate.per_hour.units


def _front(rows: Iterable[Row]) -> set[Merits]:
    """What nobody beats. In order, nothing is beaten by what comes after it."""
    front: list[Merits] = []
    for merits in sorted({_merits(row) for row in rows}):
        if not any(all(a <= b for a, b in zip(better, merits, strict=True)) for better in front):
            front.append(merits)
    return set(front)


def _merits(row: Row) -> Merits:
    """Less is better: cost, unreliability, seconds. Where seconds are not known, the price of an hour stands for cost."""
    return _price(row), -(row.offer.reliability or 0), row.forecast.seconds[1]


def elsewhere(run: Planned, prices: Sequence[Price]) -> list[Elsewhere]:
    """The cheapest first, those that do not fit last."""
    found = []
    for price in prices:
        card = card_of(price.card, _mib(price.card))
        if card is None:
            found.append(Elsewhere(price, "not known here", None, None))
            continue
        word = verdict(run.need(), card.mib)
        seconds = whole_of(job_on(run, card), run).expected
        good = word in ("fits", "tight")
        found.append(Elsewhere(price, word, seconds if good else None, price.rate.ahead(seconds) if good else None))
    return sorted(found, key=lambda row: (row.cost is None, row.cost.units if row.cost else 0))


def _mib(card: str) -> int:
    """The memory that a card's name says: "A100 40GB"."""
    said = [word[:-2] for word in card.casefold().split() if word.endswith("gb")]
    return int(said[0]) * 1024 if said and said[0].isdigit() else 0
