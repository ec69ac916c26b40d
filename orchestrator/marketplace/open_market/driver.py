"""The open market: a Market whose offers come from a provider or an index of them, and whose money is in the escrow.

The chain is the truth about money and state, the provider's signature about price, hardware, endpoint and host key.
The market's own word decides nothing. It does not wait, repeat or journal; it signs nothing itself.
"""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from ...domain.escrow import Quote, Rental
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
from ...domain.money import USDC, Money, Rate, Settlement
from ...domain.names import Instant, LeaseId, Reason
from ...errors import NoFunds, NothingMade, OfferGone, OutcomeUnknown, Refused, Transient
from ...ports import Clock
from ...second_row import Escrow
from .checks import affordable, check_quote, offer_of, seconds_to_fund, still_good
from .client import Api, ApiRefusal
from .funding import budget_of, funding_of, listed, must_be_listed, providers_of
from .leases import closed_by, found, hexed, settlement, view_of
from .times import ChainTime
from .wire import (
    INFO,
    OFFERS,
    QUOTES,
    VERSION,
    Hint,
    Info,
    OfferAnswer,
    OfferPage,
    QuoteAnswer,
    QuoteFields,
    QuoteOrder,
    RentalAnswer,
    access_hash,
    end_hint_path,
    quote_fields,
    rental_path,
)

MOST_PAGES = 50
MOST_PROVIDERS = 16                      # in a budget's list
LONGEST_START = 1800                     # seconds: longer than this we do not wait for a node, whatever the quote says
NOT_AS_OFFERED = frozenset({Reason.HARDWARE, Reason.TOO_SLOW, Reason.HOST_KEY, Reason.NO_SHOW, Reason.UNSUITABLE})


class OpenMarket:
    """`keep`: public parts that this market's nodes may keep between leases, see Order.keep."""

    def __init__(self, url: str, escrow: Escrow, clock: Clock, keep: tuple[str, ...] = (), name: str = "open") -> None:
        self._api = Api(url, escrow.sign_request)
        self._escrow, self._clock, self._keep, self.name = escrow, clock, keep, name
        self._known = False              # the market's chain and contract are ours
        self._access: dict[str, Access] = {}
        self._over: dict[str, tuple[Ended, Settlement]] = {}     # what was ended with many others

    # ---- choosing -----------------------------------------------------------------------------------------

    def offers(self, wish: Wish) -> Sequence[Offer]:
        gas = self._escrow.gas_of_a_life()
        offers = (offer_of(self.name, answer, gas) for answer in self._served())
        return [offer for offer in offers if offer]

    def prepare(self, offer: Offer, terms: Terms) -> Order:
        served = next((a for a in self._served() if a.offer_id == offer.offer_id), None)
        fresh = still_good(offer, offer_of(self.name, served, offer.gas) if served else None)
        seconds = seconds_to_fund(terms, served.min_seconds if served else 0, fresh.max_seconds)
        affordable(fresh.rate, seconds, terms)
        wanted = QuoteOrder(offer_id=fresh.offer_id, renter=self._escrow.account, seconds=seconds,
                            access_hash=access_hash(terms.ssh_public_key))
        answer = self._quoted(wanted)
        quote = check_quote(answer, fresh, wanted, terms)
        must_be_listed(quote, terms.funding)
        self._escrow.check_quote(quote, answer.signature)
        return self._order(fresh, terms, quote, answer, seconds)

    def funding(self, offers: Sequence[Offer], most: Money, until: Instant) -> Funding | None:
        """The cheapest of the offers' providers, as many as the contract looks through for little gas."""
        chosen = sorted(offers, key=lambda o: (o.rate.per_hour.units, o.offer_id))[:MOST_PROVIDERS]
        providers = tuple(dict.fromkeys(o.provider.lower() for o in chosen))
        price = max(o.rate.per_hour.units for o in chosen)
        budget = self._escrow.budget(most.units, price, until - self._clock.now(), providers)
        return funding_of(self.name, budget, until, providers) if budget else None

    def fund(self, funding: Funding) -> Funded:
        self._know()
        return Funded(self._clock.now(), self._escrow.open_budget(budget_of(funding)))

    def refund(self, funding: Funding) -> Refunded:
        budget = budget_of(funding)
        left, coin = self._escrow.close_budget(budget)
        self._bring_home()
        return Refunded(None if left is None else Money(left, USDC), coin, self._escrow.budget_spent(budget))

    def _order(self, offer: Offer, terms: Terms, quote: Quote, answer: QuoteAnswer, seconds: int) -> Order:
        rate = Rate(Money(quote.pricePerHour, USDC))
        now = self._clock.now()
        return Order(
            market=self.name, key=terms.key, offer_id=offer.offer_id, claim=offer.claim, rate=rate, seconds=seconds,
            deposit=affordable(rate, seconds, terms), placed_at=now,
            start_by=Instant(now + min(quote.startWindow, LONGEST_START)), keep=self._keep,
            funding=terms.funding.key if terms.funding else "",
            facts={"providers": list(providers_of(terms.funding)),
                   "quote": quote_fields(quote), "signature": answer.signature, "spec": answer.spec,
                   "access_hash": access_hash(terms.ssh_public_key), "ssh_public_key": terms.ssh_public_key},
        )

    def _served(self) -> list[OfferAnswer]:
        self._know()
        served: list[OfferAnswer] = []
        cursor: str | None = ""
        try:
            for _ in range(MOST_PAGES):
                page = self._api.get(OFFERS, OfferPage, {"cursor": cursor} if cursor else None)
                served += page.offers
                cursor = page.next
                if not cursor:
                    break
        except ApiRefusal as no:
            raise Transient(f"the market does not list its offers: {no}") from no
        return served

    def _know(self) -> None:
        """Refuse a market that rents through another contract than the one we checked."""
        if self._known:
            return
        try:
            info = self._api.get(INFO, Info)
        except ApiRefusal as no:
            raise Refused(f"{self._api.url} is no open market: {no}", hint="check `market` in the settings") from no
        facts = self._escrow.facts()
        if VERSION not in info.versions:
            raise Refused(f"the market speaks protocol {info.versions[:4]}, we speak {VERSION}", hint="update sealtune")
        theirs = (info.chain_id, info.escrow.lower(), info.token.lower())
        if theirs != (facts.chain_id, facts.escrow.lower(), facts.token.lower()):
            raise Refused(f"the market rents through escrow {info.escrow} on chain {info.chain_id}, ours is "
                          f"{facts.escrow} on chain {facts.chain_id}", hint="check `market` in the settings")
        self._known = True

    def _quoted(self, wanted: QuoteOrder) -> QuoteAnswer:
        try:
            return self._api.send("POST", QUOTES, wanted.model_dump(), QuoteAnswer)
        except ApiRefusal as no:
            raise OfferGone(f"offer {wanted.offer_id} was not quoted: {no}", hint="sealtune offers") from no

    # ---- renting ------------------------------------------------------------------------------------------

    def open(self, order: Order) -> Lease:
        quote = QuoteFields.model_validate(order.facts["quote"]).quote()
        rental = self._escrow.create(order.key, quote, str(order.facts["signature"]), order.seconds,
                                     order.deposit.units, str(order.facts["access_hash"]), listed(order))
        return self._begun(order, rental)

    def find(self, order: Order) -> Lease | None:
        """The escrow's "none" is a proof: it brings a deposit that was signed to its end before it says so."""
        try:
            rental = self._escrow.view(self._escrow.rental_id(order.key))
        except OutcomeUnknown as doubt:
            raise Transient(f"the deposit may still be on its way: {doubt}", hint=doubt.hint) from doubt
        return None if rental.status == "none" else self._begun(order, rental)

    def _begun(self, order: Order, rental: Rental) -> Lease:
        lease = Lease(self.name, order.key, LeaseId(rental.id), order.rate, order.placed_at,
                      str(order.facts["ssh_public_key"]))
        if rental.status in ("funded", "active"):
            self._hint(lease)            # lost, it is said again by `look`
        return lease

    def _hint(self, lease: Lease) -> RentalAnswer | None:
        """Tell the provider that the deposit is there, and which key to let in. None: it does not listen now."""
        body = Hint(ssh_public_key=lease.ssh_public_key).model_dump()
        try:
            return self._api.send("PUT", rental_path(lease.lease_id), body, RentalAnswer, lease.lease_id)
        except (Transient, ApiRefusal):
            return None

    # ---- watching -----------------------------------------------------------------------------------------

    def look(self, lease: Lease) -> LeaseView:
        rental = self._rental(lease)
        return view_of(rental, self._met(lease, rental), self._clock.now(), self._time())

    def _met(self, lease: Lease, rental: Rental) -> Access | None:
        """The endpoint, once the provider has said and the contract has confirmed it. A silent provider: None."""
        if rental.status not in ("funded", "active"):
            return None
        if rental.id not in self._access:
            answer = self._asked(lease)
            if answer is None or answer.ready is None or answer.signature is None:
                return None
            try:
                self._access[rental.id] = self._escrow.check_ready(rental, answer.ready.ready(), answer.signature)
            except Transient:            # not on the chain yet
                return None
        return self._access[rental.id]

    def _asked(self, lease: Lease) -> RentalAnswer | None:
        try:
            return self._api.get(rental_path(lease.lease_id), RentalAnswer, rental_id=lease.lease_id)
        except ApiRefusal as no:
            return self._hint(lease) if no.code == "unknown-rental" and lease.ssh_public_key else None
        except Transient:
            return None

    def _rental(self, lease: Lease) -> Rental:
        rental = self._escrow.view(lease.lease_id)
        if rental.status == "none":
            raise Transient(f"the chain does not show rental {lease.lease_id}")
        return rental

    def _time(self) -> ChainTime:
        return ChainTime.read(self._escrow.now(), self._clock.now())

    def hold(self, hold: Hold) -> LeaseView:
        rental = self._rental(hold.lease)
        if rental.status == "funded":
            raise Transient("the node has not begun yet")
        time = self._time()
        seconds = time.chain(hold.until) - rental.started_at
        if seconds > rental.seconds:
            rental = self._extended(rental, seconds, hold)
        return view_of(rental, self._access.get(rental.id), self._clock.now(), time)

    def _extended(self, rental: Rental, seconds: int, hold: Hold) -> Rental:
        if rental.status != "active":
            raise OfferGone(f"the lease is over: {rental.status}")
        if seconds > rental.max_seconds:
            raise OfferGone(f"the quote ends after {rental.max_seconds} s, {seconds} s are asked")
        total = Rate(Money(rental.price_per_hour, USDC)).ahead(seconds)
        if not hold.total_at_most.covers(total):
            raise NoFunds(f"{seconds} s cost {total}, at most {hold.total_at_most} are allowed",
                          hint="raise `budget:` in the run file")
        return self._escrow.extend_to(rental.id, seconds, hold.total_at_most.units)

    # ---- giving back --------------------------------------------------------------------------------------

    def end(self, ending: Ending) -> Ended:
        if ending.lease.lease_id in self._over:
            return self._over[ending.lease.lease_id][0]
        rental = self._rental(ending.lease)
        if rental.status != "closed":
            free = ending.reason in NOT_AS_OFFERED and self._escrow.now() <= rental.inspect_until
            rental = self._escrow.close(rental.id, free, hexed(ending.evidence), hexed(ending.anchor))
            self._say_ended(rental)
        if rental.status != "closed":
            raise Transient(f"rental {rental.id} is not closed yet")
        return Ended(at=self._time().ours(rental.closed_at), by=closed_by(rental) or "market",
                     receipt=self._escrow.closing_transaction(rental), full_refund=rental.refunded == rental.deposit,
                     node_gone=True)

    def _say_ended(self, rental: Rental) -> None:
        with suppress(Transient, ApiRefusal):    # only a hint: the provider sees the chain by itself
            self._api.send("POST", end_hint_path(rental.id), {}, RentalAnswer, rental.id)

    def end_many(self, endings: Sequence[Ending]) -> None:
        """In as few questions as the chain takes; providers are not told, they see it there."""
        plain = [e for e in endings if e.reason not in NOT_AS_OFFERED and e.lease.lease_id not in self._over]
        reports: dict[str, str] = {ending.lease.lease_id: hexed(ending.anchor) for ending in plain}
        closed = self._escrow.close_many(list(reports), reports) if plain else []
        if not closed:
            return
        time, credit = self._time(), self._bring_home()
        for one in closed:
            rental = one.rental
            ended = Ended(at=time.ours(rental.closed_at), by=closed_by(rental) or "market", receipt=one.transaction,
                          full_refund=rental.refunded == rental.deposit, node_gone=True)
            self._over[rental.id] = ended, settlement(rental, min(credit, rental.refunded), one.gas)

    def settle(self, lease: Lease) -> Settlement:
        if lease.lease_id in self._over:
            return self._over[lease.lease_id][1]
        rental = self._rental(lease)
        if rental.status != "closed":
            raise Transient(f"rental {rental.id} is not closed yet")
        credited = min(self._bring_home(), rental.refunded)
        return settlement(rental, credited, self._escrow.spent(rental.id))

    def _bring_home(self) -> int:
        """Withdraw our credit; what is left of it where the token says no."""
        if self._escrow.credit() > 0:
            with suppress(NothingMade):  # the credit stays ours, and the settlement says so
                self._escrow.withdraw()
        return self._escrow.credit()

    def mine(self) -> Sequence[Found]:
        rentals = self._escrow.open_rentals()
        now, time = self._clock.now(), self._time()
        return [found(self.name, rental, now, time) for rental in rentals]
