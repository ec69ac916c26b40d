"""The user's own machine as a Market: one offer, no money, no end but the user's.

Nothing here opens a connection or keeps a state: the address comes from the run file, and what is left on the machine
stays the user's, so an end leaves `node_gone` False and the wipe owed until it is done.
"""
from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ...domain.lease import Access, Ended, Ending, Found, Hold, Lease, LeaseView, Offer, Order, Terms, Wish
from ...domain.money import USDC, Money, Rate, Settlement
from ...domain.names import Instant, LeaseId
from ...errors import OfferGone
from ...ports import Clock

NOTHING = Money(0, USDC)
OFFER_ID = "own server"
TEN_YEARS = 315_360_000
SECONDS_TO_START = 900


@dataclass(frozen=True, slots=True)
class Server:
    """Where it is and by what it is known. `identity`: a key file, or "agent"; `trust` as in Access."""

    host: str
    port: int
    user: str
    identity: str
    host_keys: tuple[str, ...]
    trust: str


class OwnServer:
    def __init__(self, server: Server, clock: Clock, name: str = "ssh") -> None:
        self._access = Access(server.host, server.port, server.user, server.host_keys, server.trust, server.identity)
        self._clock, self.name = clock, name
        self._ended: dict[LeaseId, Ended] = {}

    def offers(self, wish: Wish) -> Sequence[Offer]:
        return (Offer(market=self.name, offer_id=OFFER_ID, rate=Rate(NOTHING), claim=None, max_seconds=TEN_YEARS,
                      stranger=False, bounded=False),)

    def prepare(self, offer: Offer, terms: Terms) -> Order:
        if offer.offer_id != OFFER_ID:
            raise OfferGone(f"there is no offer {offer.offer_id!r} here")
        now = self._clock.now()
        return Order(market=self.name, key=terms.key, offer_id=OFFER_ID, claim=None, rate=offer.rate,
                     seconds=terms.seconds, deposit=NOTHING, placed_at=now, start_by=Instant(now + SECONDS_TO_START))

    def open(self, order: Order) -> Lease:
        return Lease(self.name, order.key, LeaseId(order.key), order.rate, order.placed_at)

    def find(self, order: Order) -> Lease | None:
        """Always there: opening changes nothing, so it cannot be half done."""
        return self.open(order)

    def look(self, lease: Lease) -> LeaseView:
        ended = lease.lease_id in self._ended
        return LeaseView(as_of=self._clock.now(), access=self._access, funded_until=None, inspect_until=None,
                         cost_so_far=NOTHING, closed_by="renter" if ended else None)

    def hold(self, hold: Hold) -> LeaseView:
        return self.look(hold.lease)

    def end(self, ending: Ending) -> Ended:
        """Nothing ends but our use of it; the machine goes on."""
        now = Ended(at=self._clock.now(), by="renter", receipt=None, full_refund=False, node_gone=False)
        return self._ended.setdefault(ending.lease.lease_id, now)

    def settle(self, lease: Lease) -> Settlement:
        return Settlement(deposit=NOTHING, paid=NOTHING, fee=NOTHING, refunded=NOTHING, credited=NOTHING, gas=None,
                          final=True)

    def mine(self) -> Sequence[Found]:
        return ()
