"""The escrow once more, in plain integers: what the contract must do, refusals included.

Every verb either changes the model or raises Refused with the contract's own name for the reason. The token is
modelled as far as it can refuse: paused, blacklisted, too poor.
"""
from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from .world import NOTHING, ZERO, Quote

NONE, FUNDED, ACTIVE, CLOSED = range(4)
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
    offerId: bytes
    specHash: bytes
    accessHash: bytes
    state: int = FUNDED
    outcome: int = 0
    reason: int = 0
    refundCredited: bool = False
    closedBy: str = ZERO
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
class Model:
    escrow: str
    now: int
    balances: Counter[str]
    rentals: dict[bytes, Rental] = field(default_factory=dict)
    spent: set[bytes] = field(default_factory=set)
    credit: Counter[str] = field(default_factory=Counter)
    donated: int = 0
    paused: bool = False
    blacklist: set[str] = field(default_factory=set)

    # ---- opening ------------------------------------------------------------------------------------------

    def create(self, id: bytes, key: bytes, quote: Quote, digest: bytes, signed: bool, seconds: int, at_most: int,
               access: bytes, caller: str) -> None:
        check(caller == quote.renter, "NotAllowed")
        check(id not in self.rentals, "RentalExists")
        check(self.now <= quote.validUntil, "TooLate")
        check(quote.feeBps <= 1500 and (quote.feeBps == 0 or quote.feeRecipient != ZERO), "BadFee")
        check(digest not in self.spent, "QuoteSpent")
        check(signed, "BadSignature")
        check(max(1, quote.minSeconds) <= seconds <= quote.maxSeconds, "BadSeconds")
        deposit = price_ahead(quote.pricePerHour, seconds)
        check(deposit <= at_most, "AboveMaximum")
        self._move(caller, self.escrow, deposit)
        self.spent.add(digest)
        self.rentals[id] = Rental(
            key, quote.renter, quote.provider, quote.pricePerHour, quote.feeBps, quote.feeRecipient,
            quote.inspectionSeconds, seconds, quote.maxSeconds, self.now, self.now + quote.startWindow, deposit,
            quote.offerId, quote.specHash, access)

    def activate(self, id: bytes, ready: bytes, caller: str) -> None:
        r = self._in(id, FUNDED)
        check(caller == r.provider, "NotAllowed")
        check(self.now <= r.startBy, "TooLate")
        r.state, r.readyHash = ACTIVE, ready
        r.startedAt, r.endsAt = self.now, self.now + r.fundedSeconds

    def cancel_quote(self, quote: Quote, digest: bytes, caller: str) -> None:
        check(caller == quote.provider, "NotAllowed")
        check(digest not in self.spent, "QuoteSpent")
        self.spent.add(digest)

    def extend_to(self, id: bytes, total: int, at_most: int, caller: str) -> None:
        r = self._in(id, ACTIVE)
        check(caller == r.renter, "NotAllowed")
        check(self.now < r.endsAt, "TooLate")
        check(r.fundedSeconds < total <= r.maxSeconds, "BadSeconds")
        extra = price_ahead(r.pricePerHour, total) - r.deposit
        check(extra <= at_most, "AboveMaximum")
        self._move(caller, self.escrow, extra)
        r.deposit, r.fundedSeconds, r.endsAt = r.deposit + extra, total, r.startedAt + total

    # ---- closing ------------------------------------------------------------------------------------------

    def cancel(self, id: bytes, caller: str) -> None:
        r = self._in(id, FUNDED)
        no_show = self.now > r.startBy
        check(no_show or caller in (r.renter, r.provider), "NotAllowed")
        self._close(r, NO_SHOW if no_show else CANCELLED, caller, 0)

    def reject(self, id: bytes, reason: int, evidence: bytes, caller: str) -> None:
        r = self._in(id, ACTIVE)
        check(caller == r.renter, "NotAllowed")
        check(r.inspecting(self.now), "TooLate")
        r.reason, r.reportDigest = reason, evidence
        self._close(r, REJECTED, caller, 0)

    def end(self, id: bytes, report: bytes, caller: str) -> None:
        r = self._in(id, ACTIVE)
        check(caller in (r.renter, r.provider), "NotAllowed")
        if caller == r.renter:
            r.reportDigest = report
        elif r.inspecting(self.now) and self.now < r.endsAt:
            return self._close(r, ABANDONED, caller, 0)
        return self._close_by_time(r, caller)

    def end_signed(self, id: bytes, report: bytes, signer: str) -> None:
        r = self._in(id, ACTIVE)
        check(signer == r.renter, "BadSignature")
        r.reportDigest = report
        self._close_by_time(r, signer)

    def settle(self, id: bytes, caller: str) -> None:
        r = self._in(id, ACTIVE)
        check(self.now >= r.endsAt, "TooEarly")
        self._close_by_time(r, caller)

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
        return sum(r.deposit for r in self.rentals.values() if r.state != CLOSED)

    def open_of(self, account: str, as_provider: bool) -> set[bytes]:
        return {id for id, r in self.rentals.items()
                if r.state != CLOSED and account == (r.provider if as_provider else r.renter)}

    def _close_by_time(self, r: Rental, by: str) -> None:
        self._close(r, ENDED if self.now < r.endsAt else EXPIRED, by, r.accrued(self.now))

    def _close(self, r: Rental, outcome: int, by: str, accrued: int) -> None:
        r.fee = accrued * r.feeBps // 10_000
        r.paid, r.refunded = accrued - r.fee, r.deposit - accrued
        r.state, r.outcome, r.closedBy, r.closedAt = CLOSED, outcome, by, self.now
        self.credit[r.provider] += r.paid
        self.credit[r.feeRecipient] += r.fee
        if r.refunded and not self._push(r.renter, r.refunded):
            r.refundCredited = True
            self.credit[r.renter] += r.refunded

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
