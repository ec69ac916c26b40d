"""Markets by name: a register that refuses a second one of a name, and several markets as one.

The wiring registers factories; a market is built when it is first used, so one that is not configured is in nobody's
way. Nothing here knows a driver.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from ..domain.lease import (
    Ended,
    Ending,
    Found,
    Funded,
    Funding,
    Hold,
    Lease,
    LeaseView,
    Offer,
    Order,
    Refunded,
    Terms,
    Wish,
)
from ..domain.money import Money, Settlement
from ..domain.names import Instant
from ..errors import Refused
from ..ports import Market

Factory = Callable[[], Market]


class Registry:
    def __init__(self) -> None:
        self._factories: dict[str, Factory] = {}
        self._built: dict[str, Market] = {}

    def add(self, name: str, factory: Factory) -> None:
        """ValueError for a name that is taken: two drivers under one name would mix up leases."""
        if name in self._factories:
            raise ValueError(f"market {name!r} is registered already")
        self._factories[name] = factory

    def names(self) -> tuple[str, ...]:
        return tuple(sorted(self._factories))

    def market(self, name: str) -> Market:
        """Refused for a name that nobody registered."""
        if name not in self._factories:
            raise Refused(f"no market is called {name!r}", hint=f"one of: {', '.join(self.names()) or 'none'}")
        if name not in self._built:
            self._built[name] = self._factories[name]()
        return self._built[name]

    def markets(self, names: Sequence[str] = ()) -> Markets:
        """These as one, or all of them."""
        return Markets({name: self.market(name) for name in names or self.names()})


class Markets:
    """Several markets as one. It goes by the market's name in the value; the story does not notice."""

    def __init__(self, by_name: Mapping[str, Market]) -> None:
        self._by_name = dict(by_name)

    def offers(self, wish: Wish) -> Sequence[Offer]:
        return [offer for market in self._by_name.values() for offer in market.offers(wish)]

    def funding(self, offers: Sequence[Offer], most: Money, until: Instant) -> Funding | None:
        """Of one market: a run stays on the one that was agreed on."""
        return self._of(offers[0].market).funding(offers, most, until)

    def fund(self, funding: Funding) -> Funded:
        return self._of(funding.market).fund(funding)

    def refund(self, funding: Funding) -> Refunded:
        return self._of(funding.market).refund(funding)

    def prepare(self, offer: Offer, terms: Terms) -> Order:
        return self._of(offer.market).prepare(offer, terms)

    def open(self, order: Order) -> Lease:
        return self._of(order.market).open(order)

    def find(self, order: Order) -> Lease | None:
        return self._of(order.market).find(order)

    def look(self, lease: Lease) -> LeaseView:
        return self._of(lease.market).look(lease)

    def hold(self, hold: Hold) -> LeaseView:
        return self._of(hold.lease.market).hold(hold)

    def end(self, ending: Ending) -> Ended:
        return self._of(ending.lease.market).end(ending)

    def end_many(self, endings: Sequence[Ending]) -> None:
        for name in dict.fromkeys(ending.lease.market for ending in endings):
            self._of(name).end_many([ending for ending in endings if ending.lease.market == name])

    def settle(self, lease: Lease) -> Settlement:
        return self._of(lease.market).settle(lease)

    def mine(self) -> Sequence[Found]:
        """All of them, or none: a market that cannot be listed must not look like one without leases."""
        return [found for market in self._by_name.values() for found in market.mine()]

    def _of(self, name: str) -> Market:
        if name not in self._by_name:
            raise Refused(f"market {name!r} is not set up here", hint="add it to the settings")
        return self._by_name[name]
