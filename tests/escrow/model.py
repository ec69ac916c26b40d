"""The escrow once more, in plain integers: what the contract must do, refusals included.

Every verb either changes the model or raises Refused with the contract's own name for the reason. The token is
modelled as far as it can refuse: paused, blacklisted, too poor.
"""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .world import NOTHING, ZERO, Quote, Terms, list_hash

NONE, FUNDED, ACTIVE, CLOSED = range(4)
NOBODY, BY_RENTER, BY_PROVIDER, BY_ANYONE = range(4)
CANCELLED, NO_SHOW, REJECTED, ABANDONED, ENDED, EXPIRED = range(1, 7)
STATUS_NONE, STATUS_FUNDED, STATUS_NO_SHOW, STATUS_ACTIVE, STATUS_EXPIRED, STATUS_CLOSED = range(6)


class Refused(Exception):
    """The name of the contract's error."""


@dataclass
class Rental:
    """Fields named as the contract's, so that the two can be compared one by one."""

    key: bytes
    renter: str
    provider: str
    pricePerHour: int
    feeBps: int
    feeRecipient: str
    inspectionSeconds: int
    fundedSeconds: int
    maxSeconds: int
    createdAt: int
    startBy: int
    deposit: int
    accessHash: bytes
    budget: int = 0
    state: int = FUNDED
    outcome: int = 0
    reason: int = 0
    closedBy: int = NOBODY
    closedAt: int = 0
    startedAt: int = 0
    endsAt: int = 0
    paid: int = 0
    fee: int = 0
    refunded: int = 0
    readyHash: bytes = NOTHING
    reportDigest: bytes = NOTHING

    def accrued(self, now: int) -> int:
        if self.state != ACTIVE:
            return self.paid + self.fee
        return self.pricePerHour * (min(now, self.endsAt) - self.startedAt) // 3600

    def status(self, now: int) -> int:
        if self.state == FUNDED:
            return STATUS_NO_SHOW if now > self.startBy else STATUS_FUNDED
        if self.state == ACTIVE:
            return STATUS_ACTIVE if now < self.endsAt else STATUS_EXPIRED
        return STATUS_CLOSED

    def inspecting(self, now: int) -> bool:
        return now <= self.startedAt + self.inspectionSeconds


def price_ahead(per_hour: int, seconds: int) -> int:
    return -(-per_hour * seconds // 3600)


def check(fine: bool, otherwise: str) -> None:
    if not fine:
        raise Refused(otherwise)


@dataclass
class Budget:
    session: str = ZERO
    left: int = 0
    maxPricePerHour: int = 0
    expiry: int = 0
    number: int = 0
    providersHash: bytes = NOTHING


@dataclass
class Model:
    escrow: str
    now: int
    balances: Counter[str]
    rentals: dict[bytes, Rental] = field(default_factory=dict)
    spent: set[tuple[str, bytes]] = field(default_factory=set)
    budgets: dict[str, Budget] = field(default_factory=dict)
    authorizations: set[bytes] = field(default_factory=set)
    credit: Counter[str] = field(default_factory=Counter)
    donated: int = 0
    paused: bool = False
    blacklist: set[str] = field(default_factory=set)

    # ---- opening ------------------------------------------------------------------------------------------

    def create(self, id: bytes, key: bytes, quote: Quote, signed: bool, seconds: int, at_most: int, access: bytes,
               caller: str) -> None:
        check(caller == quote.renter, "NotAllowed")
        self._check_opening(id, quote, signed, seconds, at_most)
        self._move(caller, self.escrow, price_ahead(quote.pricePerHour, seconds))
        self._open(id, key, quote, seconds, access, 0)

    def create_from_budget(self, id: bytes, key: bytes, quote: Quote, signed: bool, seconds: int, at_most: int,
                           access: bytes, providers: tuple[str, ...], caller: str) -> None:
        b = self._budget(quote.renter)
        check(caller == b.session, "NotAllowed")
        check(quote.pricePerHour <= b.maxPricePerHour, "AboveMaximum")
        if b.providersHash != NOTHING:
            check(list_hash(providers) == b.providersHash, "BadProviders")
            check(quote.provider in providers, "NotAllowed")
        self._check_opening(id, quote, signed, seconds, at_most)
        self._draw(b, price_ahead(quote.pricePerHour, seconds))
        self._open(id, key, quote, seconds, access, b.number)

    def _check_opening(self, id: bytes, quote: Quote, signed: bool, seconds: int, at_most: int) -> None:
        check(id not in self.rentals, "RentalExists")
        check(self.now <= quote.validUntil, "TooLate")
        check(quote.feeBps <= 1500 and (quote.feeBps == 0 or quote.feeRecipient != ZERO), "BadFee")
        check((quote.provider, quote.salt) not in self.spent, "QuoteSpent")
        check(signed, "BadSignature")
        check(max(1, quote.minSeconds) <= seconds <= quote.maxSeconds, "BadSeconds")
        check(price_ahead(quote.pricePerHour, seconds) <= at_most, "AboveMaximum")

    def _open(self, id: bytes, key: bytes, quote: Quote, seconds: int, access: bytes, budget: int) -> None:
        self.spent.add((quote.provider, quote.salt))
        self.rentals[id] = Rental(
            key, quote.renter, quote.provider, quote.pricePerHour, quote.feeBps,
            quote.feeRecipient if quote.feeBps else ZERO, quote.inspectionSeconds, seconds, quote.maxSeconds, self.now,
            self.now + quote.startWindow, price_ahead(quote.pricePerHour, seconds), access, budget)

    def activate(self, id: bytes, ready: bytes, caller: str) -> None:
        r = self._in(id, FUNDED)
        check(caller == r.provider, "NotAllowed")
        check(self.now <= r.startBy, "TooLate")
        r.state, r.readyHash = ACTIVE, ready
        r.startedAt, r.endsAt = self.now, self.now + r.fundedSeconds

    def cancel_quote(self, quote: Quote, caller: str) -> None:
        check(caller == quote.provider, "NotAllowed")
        check((quote.provider, quote.salt) not in self.spent, "QuoteSpent")
        self.spent.add((quote.provider, quote.salt))

    def extend_to(self, id: bytes, total: int, at_most: int, caller: str) -> None:
        r = self._in(id, ACTIVE)
        check(caller in (r.renter, self.session(r)), "NotAllowed")
        check(self.now < r.endsAt, "TooLate")
        check(r.fundedSeconds < total <= r.maxSeconds, "BadSeconds")
        extra = price_ahead(r.pricePerHour, total) - r.deposit
        check(extra <= at_most, "AboveMaximum")
        if caller == r.renter:
            self._move(caller, self.escrow, extra)
        else:
            self._draw(self._budget(r.renter), extra)
        r.deposit, r.fundedSeconds, r.endsAt = r.deposit + extra, total, r.startedAt + total

    # ---- budgets ------------------------------------------------------------------------------------------

    def open_budget(self, terms: Terms, digest: bytes, signed: bool) -> None:
        b = self._budget(terms.owner)
        check(b.expiry == 0, "BudgetIsOpen")
        check(self.now < terms.expiry, "TooLate")
        check(not self.paused and not {terms.owner, self.escrow} & self.blacklist, "Error")
        check(signed and digest not in self.authorizations, "Error")
        self._move(terms.owner, self.escrow, terms.cap)
        self.authorizations.add(digest)
        self.budgets[terms.owner] = Budget(terms.session, terms.cap, terms.maxPricePerHour, terms.expiry, b.number + 1,
                                           terms.providersHash)

    def close_budget(self, owner: str, caller: str) -> None:
        b = self._budget(owner)
        check(b.expiry != 0, "NoBudget")
        check(self.now >= b.expiry or caller in (owner, b.session), "NotAllowed")
        left, b.left, b.expiry = b.left, 0, 0
        self._send_home(owner, left)

    def session(self, r: Rental) -> str | None:
        """The key that may act for the renter of this rental."""
        b = self._budget(r.renter)
        return b.session if r.budget and r.budget == b.number else None

    def _draw(self, b: Budget, amount: int) -> None:
        check(self.now < b.expiry, "TooLate")
        check(amount <= b.left, "AboveMaximum")
        b.left -= amount

    def _budget(self, owner: str) -> Budget:
        return self.budgets.get(owner, Budget())

    # ---- closing ------------------------------------------------------------------------------------------

    def party(self, r: Rental, caller: str) -> int:
        if caller == r.renter:
            return BY_RENTER
        if caller == r.provider:
            return BY_PROVIDER
        return BY_RENTER if caller == self.session(r) else BY_ANYONE

    def cancel(self, id: bytes, caller: str) -> None:
        r = self._in(id, FUNDED)
        no_show, by = self.now > r.startBy, self.party(r, caller)
        check(no_show or by != BY_ANYONE, "NotAllowed")
        self._close(r, NO_SHOW if no_show else CANCELLED, by, 0)

    def reject(self, id: bytes, reason: int, evidence: bytes, caller: str) -> None:
        r = self._in(id, ACTIVE)
        check(self.party(r, caller) == BY_RENTER, "NotAllowed")
        check(r.inspecting(self.now), "TooLate")
        r.reason, r.reportDigest = reason, evidence
        self._close(r, REJECTED, BY_RENTER, 0)

    def end(self, id: bytes, report: bytes, caller: str) -> None:
        r = self._in(id, ACTIVE)
        by = self.party(r, caller)
        check(by != BY_ANYONE, "NotAllowed")
        if by == BY_RENTER:
            r.reportDigest = report
        elif r.inspecting(self.now) and self.now < r.endsAt:
            return self._close(r, ABANDONED, by, 0)
        return self._close_by_time(r, by)

    def end_signed(self, id: bytes, report: bytes, signer: str) -> None:
        r = self._in(id, ACTIVE)
        check(signer in (r.renter, self.session(r)), "BadSignature")
        r.reportDigest = report
        self._close_by_time(r, BY_RENTER)

    def settle(self, id: bytes, caller: str) -> None:
        r = self._in(id, ACTIVE)
        check(self.now >= r.endsAt, "TooEarly")
        self._close_by_time(r, self.party(r, caller))

    # ---- money --------------------------------------------------------------------------------------------

    def withdraw(self, owner: str) -> None:
        amount = self.credit[owner]
        check(amount > 0, "NothingToWithdraw")
        check(self._push(owner, amount), "TransferFailed")
        self.credit[owner] = 0

    def donate(self, sender: str, amount: int) -> None:
        self._move(sender, self.escrow, amount)
        self.donated += amount

    def held(self) -> int:
        deposits = sum(r.deposit for r in self.rentals.values() if r.state != CLOSED)
        return deposits + sum(b.left for b in self.budgets.values())

    def open_of(self, account: str, as_provider: bool) -> set[bytes]:
        return {id for id, r in self.rentals.items()
                if r.state != CLOSED and account == (r.provider if as_provider else r.renter)}

    def _close_by_time(self, r: Rental, by: int) -> None:
        self._close(r, ENDED if self.now < r.endsAt else EXPIRED, by, r.accrued(self.now))

    def _close(self, r: Rental, outcome: int, by: int, accrued: int) -> None:
        r.fee = accrued * r.feeBps // 10_000
        r.paid, r.refunded = accrued - r.fee, r.deposit - accrued
        r.state, r.outcome, r.closedBy, r.closedAt = CLOSED, outcome, by, self.now
        r.key = r.readyHash = NOTHING
        self.credit[r.provider] += r.paid
        self.credit[r.feeRecipient] += r.fee
        self._send_home(r.renter, r.refunded)

    def _send_home(self, owner: str, amount: int) -> None:
        if amount and not self._push(owner, amount):
            self.credit[owner] += amount

    def _in(self, id: bytes, state: int) -> Rental:
        check(id in self.rentals and self.rentals[id].state == state, "WrongState")
        return self.rentals[id]

    def _push(self, to: str, amount: int) -> bool:
        try:
            self._move(self.escrow, to, amount)
        except Refused:
            return False
        return True

    def _move(self, sender: str, to: str, amount: int) -> None:
        """Circle's token refuses with a text, which is called Error here."""
        check(not self.paused and not {sender, to, self.escrow} & self.blacklist, "Error")
        check(self.balances[sender] >= amount, "Error")
        self.balances[sender] -= amount
        self.balances[to] += amount
