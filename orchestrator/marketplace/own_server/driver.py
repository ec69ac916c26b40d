"""The user's own machine as a Market: one offer, no money, no end but the user's.

An offer is only made of a machine that was looked at: whoever cannot log in learns it before anything is begun. Nothing
here opens a connection itself or keeps a state: the address comes from `find`, the look from `look_in`, and what is left
on the machine stays the user's, so an end leaves `node_gone` False and the wipe owed until it is done.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property

from ...domain.lease import (
    Access,
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
from ...domain.money import POL, USDC, Money, Rate, Settlement
from ...domain.names import Instant, LeaseId
from ...errors import NothingMade, OfferGone
from ...ports import Clock

NOTHING = Money(0, USDC)
OFFER_ID = "own server"
PUBLIC_PARTS = ("environment", "base model")
TEN_YEARS = 315_360_000
SECONDS_TO_START = 900


class OwnServer:
    """`find`: where it is and by what it is known, asked once. `look_in`: logs in there and says in a line what stands
    there; its errors are the offer's. `keep`: public parts that stay for the next run."""

    def __init__(self, find: Callable[[], Access], look_in: Callable[[Access], str], clock: Clock,
                 keep: tuple[str, ...] = PUBLIC_PARTS, name: str = "ssh") -> None:
        self._find, self._look_in, self._clock, self._keep, self.name = find, look_in, clock, keep, name
        self._ended: dict[LeaseId, Ended] = {}

    @cached_property
    def access(self) -> Access:
        return self._find()

    def offers(self, wish: Wish) -> Sequence[Offer]:
        """Refused when the server does not let us in; nothing is begun then."""
        shown = self._look_in(self.access)
        return (Offer(market=self.name, offer_id=OFFER_ID, rate=Rate(NOTHING), claim=None, max_seconds=TEN_YEARS,
                      stranger=False, bounded=False, shown=shown, where=self.access.host),)

    def funding(self, offers: Sequence[Offer], most: Money, until: Instant) -> Funding | None:
        """Nothing is paid."""
        return None

    def fund(self, funding: Funding) -> Funded:
        raise NothingMade("nothing is paid for a server of one's own")

    def refund(self, funding: Funding) -> Refunded:
        return Refunded(NOTHING, Money(0, POL), Money(0, POL))

    def prepare(self, offer: Offer, terms: Terms) -> Order:
        if offer.offer_id != OFFER_ID:
            raise OfferGone(f"there is no offer {offer.offer_id!r} here")
        now = self._clock.now()
        return Order(market=self.name, key=terms.key, offer_id=OFFER_ID, claim=None, rate=offer.rate,
                     seconds=terms.seconds, deposit=NOTHING, placed_at=now, start_by=Instant(now + SECONDS_TO_START),
                     keep=self._keep)

    def open(self, order: Order) -> Lease:
        return Lease(self.name, order.key, LeaseId(order.key), order.rate, order.placed_at)

    def find(self, order: Order) -> Lease | None:
        """Always there: opening changes nothing, so it cannot be half done."""
        return self.open(order)

    def look(self, lease: Lease) -> LeaseView:
        ended = lease.lease_id in self._ended
        return LeaseView(as_of=self._clock.now(), access=self.access, funded_until=None, inspect_until=None,
                         cost_so_far=NOTHING, closed_by="renter" if ended else None)

    def hold(self, hold: Hold) -> LeaseView:
        return self.look(hold.lease)

    def end(self, ending: Ending) -> Ended:
        """Nothing ends but our use of it; the machine goes on."""
        now = Ended(at=self._clock.now(), by="renter", receipt=None, full_refund=False, node_gone=False)
        return self._ended.setdefault(ending.lease.lease_id, now)

    def end_many(self, endings: Sequence[Ending]) -> None:
        """There is one."""

    def settle(self, lease: Lease) -> Settlement:
        return Settlement(deposit=NOTHING, paid=NOTHING, fee=NOTHING, refunded=NOTHING, credited=NOTHING, gas=None,
                          final=True)

    def mine(self) -> Sequence[Found]:
        return ()
