"""A budget of the escrow in the story's words, and back from its journal. Pure."""
from __future__ import annotations

from collections.abc import Sequence

from ...domain.document import Json
from ...domain.escrow import Budget, Quote
from ...domain.lease import Funding, Order
from ...domain.money import USDC, Money
from ...domain.names import Instant
from ...errors import OfferGone


def funding_of(market: str, budget: Budget, until: Instant, providers: Sequence[str]) -> Funding:
    facts: dict[str, Json] = {name: getattr(budget, name) for name in Budget.__dataclass_fields__}
    return Funding(market, budget.salt, Money(budget.cap, USDC), until, {**facts, "providers": list(providers)})


def budget_of(funding: Funding) -> Budget:
    """ValueError for a row that is none of ours."""
    facts = {name: funding.facts.get(name) for name in Budget.__dataclass_fields__}
    kinds = {name: int if name in ("cap", "maxPricePerHour", "expiry") else str for name in facts}
    if any(type(value) is not kinds[name] for name, value in facts.items()):
        raise ValueError("what was written down of the budget cannot be read")
    return Budget(**facts)  # type: ignore[arg-type]


def providers_of(funding: Funding | None) -> tuple[str, ...]:
    found = funding.facts.get("providers") if funding else None
    return tuple(str(one) for one in found) if isinstance(found, list | tuple) else ()


def listed(order: Order) -> tuple[str, ...]:
    """The list of the budget that pays for this order."""
    found = order.facts.get("providers")
    return tuple(str(one) for one in found) if isinstance(found, list | tuple) else ()


def must_be_listed(quote: Quote, funding: Funding | None) -> None:
    """OfferGone for what the owner's signature does not pay: another provider, or dearer."""
    if funding is None:
        return
    if quote.provider.lower() not in providers_of(funding):
        raise OfferGone(f"the signed budget does not pay the provider {quote.provider}", hint="sealtune run signs a new one")
    if quote.pricePerHour > budget_of(funding).maxPricePerHour:
        raise OfferGone(f"the quote asks {quote.pricePerHour} units per hour, the signed budget pays less")
