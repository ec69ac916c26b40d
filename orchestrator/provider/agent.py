"""The provider's story: quote, see the deposit, let the renter in, say so on the chain, let the renter out.

HTTP only asks and hints; what happens to the machine is decided in `turn`, from the chain, by one thread. Every turn
starts from what the chain shows, so a crash at any point is mended by the next. Nothing here knows HTTP or keys.
"""
from __future__ import annotations

import logging
import secrets
import threading
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from ..domain.escrow import EscrowFacts, Quote, Ready, Rental
from ..domain.money import USDC, Money
from ..errors import NothingMade, SealtuneError
from ..marketplace.open_market.wire import (
    VERSION,
    Info,
    OfferAnswer,
    QuoteAnswer,
    QuoteFields,
    QuoteOrder,
    ReadyFields,
    RentalAnswer,
    access_hash,
    offer_hash,
    quote_fields,
    ready_fields,
    spec_hash,
)
from .access import Door
from .config import ProviderConfig
from .store import Guest, Store

log = logging.getLogger("sealtune.provider")
SECONDS_TO_LOCK_OUT = 8


class Chain(Protocol):
    """The provider's view of the escrow. Sending verbs may be repeated: the rental's state decides.

    They return when included, or raise NothingMade, Transient or OutcomeUnknown as the ports do."""

    @property
    def account(self) -> str: ...
    def facts(self) -> EscrowFacts: ...
    def now(self) -> int:
        """Chain time, between blocks too."""
        ...

    def view(self, rental_id: str) -> Rental: ...
    def open_rentals(self) -> Sequence[Rental]:
        """Those in which we are the provider."""
        ...

    def speaks_for(self, rental: Rental, asker: str) -> bool:
        """Its renter, or the key of the renter's budget that pays for it."""
        ...

    def sign(self, value: Quote | Ready) -> str: ...
    def ready_hash(self, ready: Ready) -> str: ...
    def activate(self, rental_id: str, ready_hash: str) -> None: ...
    def settle(self, rental_id: str) -> None: ...
    def credit(self) -> int: ...
    def withdraw(self) -> None: ...


class Problem(Exception):
    """An answer that is a no: HTTP status, stable code, one line for a person."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(detail)
        self.status, self.code, self.detail = status, code, detail


class Agent:
    """`lock_out` ends every session of the renter on the node; it may be called again, and raises when it failed."""

    def __init__(self, config: ProviderConfig, chain: Chain, store: Store, door: Door,
                 lock_out: Callable[[], None]) -> None:
        self._config, self._chain, self._store, self._door = config, chain, store, door
        self._lock_out = lock_out
        self._gone, self._numbers = threading.Condition(), QuoteNumbers()
        self.wake = threading.Event()    # somebody said that the chain has news

    # ---- asked --------------------------------------------------------------------------------------------

    def info(self) -> Info:
        facts = self._chain.facts()
        return Info(versions=[VERSION], name=self._config.name, chain_id=facts.chain_id, escrow=facts.escrow,
                    token=facts.token, time=self._chain.now())

    def offers(self) -> list[OfferAnswer]:
        """Our one offer, or none while somebody is in."""
        return [] if self._busy() else [self._config.offered(self._chain.account)]

    def quote(self, order: QuoteOrder) -> QuoteAnswer:
        offer = self._config.offer
        if order.offer_id != offer.offer_id:
            raise Problem(404, "unknown-offer", f"there is no offer {order.offer_id}")
        if not offer.min_seconds <= order.seconds <= offer.max_seconds:
            raise Problem(422, "bad-seconds", f"rented for {offer.min_seconds} to {offer.max_seconds} seconds")
        if self._busy():
            raise Problem(409, "busy", "rented to somebody else")
        quote = Quote(
            provider=self._chain.account, renter=order.renter, offerId=offer_hash(offer.offer_id),
            specHash=spec_hash(offer.spec()), pricePerHour=offer.units_per_hour(), feeBps=offer.fee_bps,
            feeRecipient=offer.fee_recipient, minSeconds=offer.min_seconds, maxSeconds=offer.max_seconds,
            startWindow=offer.start_seconds, inspectionSeconds=offer.inspection_seconds,
            validUntil=self._chain.now() + self._config.quote_seconds, salt=self._numbers(),
        )
        return QuoteAnswer(quote=QuoteFields.model_validate(quote_fields(quote)), signature=self._chain.sign(quote),
                           spec=offer.spec())

    def hint(self, asker: str, rental_id: str, ssh_public_key: str) -> RentalAnswer:
        """The renter says that the deposit is there. Believed from the chain; remembered for the next turn."""
        rental = self._rental_of(asker, rental_id)
        if rental.access_hash.lower() != access_hash(ssh_public_key):
            raise Problem(422, "wrong-key", "the deposit was made for another ssh key")
        if rental.status not in ("funded", "active"):
            return RentalAnswer(state="ended")
        guest = self._register(Guest(rental_id, rental.renter, ssh_public_key))
        self.wake.set()
        return self._answer(guest, rental)

    def rental(self, asker: str, rental_id: str) -> RentalAnswer:
        rental = self._rental_of(asker, rental_id)
        if rental.status not in ("funded", "active"):
            return RentalAnswer(state="ended")
        guest = self._store.book().guest(rental_id)
        if guest is None:
            raise Problem(404, "unknown-rental", "nobody told us which ssh key to let in")
        return self._answer(guest, rental)

    def end_hint(self, asker: str, rental_id: str) -> RentalAnswer:
        """The renter says that it is over. Answers when the renter is out, so that the offer is free again."""
        rental = self._rental_of(asker, rental_id)
        self.wake.set()
        if rental.status in ("funded", "active"):
            return RentalAnswer(state="waiting")
        with self._gone:
            self._gone.wait_for(lambda: not self._is_in(rental_id), timeout=SECONDS_TO_LOCK_OUT)
        return RentalAnswer(state="ended")

    def _is_in(self, rental_id: str) -> bool:
        return any(guest.rental_id == rental_id for guest in self._store.book().present())

    def _busy(self) -> bool:
        return bool(self._store.book().present()) or any(
            rental.status in ("funded", "active", "expired") for rental in self._chain.open_rentals())

    def _rental_of(self, asker: str, rental_id: str) -> Rental:
        rental = self._chain.view(rental_id)
        if rental.status == "none" or rental.provider.lower() != self._chain.account.lower():
            raise Problem(404, "unknown-rental", "the chain shows no such rental of ours")
        if not self._chain.speaks_for(rental, asker):
            raise Problem(403, "not-yours", "the rental belongs to another account")
        return rental

    def _register(self, guest: Guest) -> Guest:
        book = self._store.change(lambda b: b if b.present() or b.guest(guest.rental_id) else b.having(guest))
        known = book.guest(guest.rental_id)
        if known is None:
            raise Problem(409, "busy", "somebody else is in")
        return known

    def _answer(self, guest: Guest, rental: Rental) -> RentalAnswer:
        if guest.phase != "ready" or guest.ready is None or rental.status != "active":
            return RentalAnswer(state="ended" if guest.phase == "ended" else "waiting")
        return RentalAnswer(state="ready", ready=ReadyFields.model_validate(ready_fields(guest.ready)),
                            signature=guest.signature)

    # ---- deciding -----------------------------------------------------------------------------------------

    def turn(self) -> None:
        """One look at the chain, and what follows from it. A failure is logged and tried again on the next turn."""
        if not self._store.book().present():
            self._attempt(self._door.shut)
        for guest in self._store.book().present():
            self._attempt(lambda g=guest: self._serve(g))  # type: ignore[misc]
        self._attempt(self._collect)

    def _attempt(self, what: Callable[[], None]) -> None:
        try:
            what()
        except (SealtuneError, OSError) as problem:
            log.warning("%s", problem)

    def _serve(self, guest: Guest) -> None:
        rental = self._chain.view(guest.rental_id)
        over = rental.status == "active" and self._chain.now() >= rental.ends_at
        if over or rental.status not in ("funded", "active"):
            self._show_out(guest, rental)
        elif guest.phase == "waiting":
            self._let_in(guest, rental)
        else:
            self._door.admit(guest.ssh_public_key)

    def _let_in(self, guest: Guest, rental: Rental) -> None:
        """Door first, clock second: the renter does not pay for a closed door. The Ready message is remembered
        before its hash goes to the chain, so that what we serve later is what we promised there."""
        if guest.ready is None:
            ready = self._ready(rental)
            guest = replace(guest, ready=ready, signature=self._chain.sign(ready))
            self._remember(guest)
        assert guest.ready is not None
        self._door.admit(guest.ssh_public_key)
        if rental.status == "funded":
            try:
                self._chain.activate(rental.id, self._chain.ready_hash(guest.ready))
            except NothingMade:          # cancelled in between, or too late: the next turn shows the renter out
                self._door.shut()
                raise
        self._remember(replace(guest, phase="ready"))
        log.info("rental %s is active", rental.id)

    def _ready(self, rental: Rental) -> Ready:
        config = self._config
        return Ready(rentalId=rental.id, host=config.node_host, port=config.node_port, user=config.node_user,
                     hostKeys=config.node_host_keys, accessHash=rental.access_hash, notBefore=self._chain.now(),
                     salt=salt())

    def _show_out(self, guest: Guest, rental: Rental) -> None:
        self._door.shut()
        self._lock_out()
        with self._gone:
            self._remember(replace(guest, phase="ended"))
            self._gone.notify_all()
        log.info("rental %s is over: %s", rental.id, rental.outcome or rental.status)

    def _collect(self) -> None:
        """Close what has run out, whoever it was rented to, and fetch what the contract owes us."""
        for rental in self._chain.open_rentals():
            if rental.status == "expired" or (rental.status == "active" and self._chain.now() >= rental.ends_at):
                self._chain.settle(rental.id)
        least = self._config.withdraw_at
        if least and self._chain.credit() >= Money.parse(least, USDC).units:
            self._chain.withdraw()

    def _remember(self, guest: Guest) -> None:
        self._store.change(lambda book: book.having(guest))


class QuoteNumbers:
    """Salts for quotes: 256 in a row differ in their last byte only, so that the contract keeps them in one slot."""

    def __init__(self) -> None:
        self._turn, self._block, self._next = threading.Lock(), "", 256

    def __call__(self) -> str:
        with self._turn:
            if self._next == 256:
                self._block, self._next = secrets.token_hex(31), 0
            self._next += 1
            return f"0x{self._block}{self._next - 1:02x}"


def salt() -> str:
    """Keeps an endpoint from being guessed from its hash."""
    return "0x" + secrets.token_hex(32)
