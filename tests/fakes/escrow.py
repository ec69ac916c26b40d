"""An escrow in memory: the contract's arithmetic and state machine, the renter's port on it, and the provider's side.

Signatures are real (EIP-712, throwaway keys); only the chain is not. Money is conserved: `balances`, `held` and
`credits` always add up to what was minted.
"""
from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from orchestrator.chain import typed
from orchestrator.chain.wallet import Wallet
from orchestrator.domain.escrow import Budget, EscrowFacts, Quote, Ready, Rental
from orchestrator.domain.lease import Access
from orchestrator.domain.money import POL, Money
from orchestrator.domain.names import LeaseKey, Reason
from orchestrator.errors import NoFunds, NothingMade, OfferGone, OutcomeUnknown, StopRun, Transient, Unreachable
from orchestrator.ports import Clock
from orchestrator.second_row import Closed

FACTS = EscrowFacts(31337, "0x" + "e5" * 20, "0x" + "05" * 20)
ZEROS = "0x" + "00" * 32


def wallet() -> Wallet:
    return Wallet(secrets.token_bytes(32))


@dataclass
class Contract:
    """One deployment. `clock` is the chain's. `blocked`: accounts (lower case) to which the token refuses to pay."""

    clock: Clock
    facts: EscrowFacts = FACTS
    balances: dict[str, int] = field(default_factory=dict)
    credits: dict[str, int] = field(default_factory=dict)
    blocked: set[str] = field(default_factory=set)
    spent: set[str] = field(default_factory=set)
    rentals: dict[str, Rental] = field(default_factory=dict)
    fee_to: dict[str, str] = field(default_factory=dict)
    inspection: dict[str, int] = field(default_factory=dict)
    transactions: int = 0

    def now(self) -> int:
        return self.clock.now()

    def mint(self, account: str, units: int) -> None:
        self.balances[account.lower()] = self.balances.get(account.lower(), 0) + units

    def held(self) -> int:
        return sum(r.deposit for r in self.rentals.values() if r.status in ("funded", "active"))

    def total(self) -> int:
        return sum(self.balances.values()) + sum(self.credits.values()) + self.held()

    def view(self, rental_id: str) -> Rental:
        rental = self.rentals.get(rental_id.lower(), _nothing(rental_id))
        if rental.status == "funded" and self.now() > rental.start_by:
            return replace(rental, status="no-show")
        if rental.status == "active":
            until = min(self.now(), rental.ends_at)
            status = "active" if self.now() < rental.ends_at else "expired"
            return replace(rental, status=status, accrued=rental.price_per_hour * (until - rental.started_at) // 3600)
        return rental

    def create(self, sender: str, key: str, quote: Quote, signature: str, seconds: int, most: int, access: str) -> str:
        rental_id = typed.rental_id(self.facts, sender, key)
        self._unless(rental_id in self.rentals, "rental exists")
        self._unless(sender.lower() != quote.renter.lower(), "not allowed")
        self._unless(self.now() > quote.validUntil, "quote expired", OfferGone)
        message = typed.message(self.facts, quote)
        self._unless((typed.signer(message, signature) or "").lower() != quote.provider.lower(), "bad sig", OfferGone)
        self._unless(typed.digest(message) in self.spent, "quote spent", OfferGone)
        self._unless(not max(1, quote.minSeconds) <= seconds <= quote.maxSeconds, "bad seconds")
        deposit = ahead(quote.pricePerHour, seconds)
        self._unless(deposit > most, "above maximum")
        self._pull(sender, deposit)
        self.spent.add(typed.digest(message))
        self.fee_to[rental_id] = quote.feeRecipient.lower()
        self.inspection[rental_id] = quote.inspectionSeconds
        self.rentals[rental_id] = replace(
            _nothing(rental_id), key="0x" + key, renter=sender, provider=quote.provider, status="funded",
            price_per_hour=quote.pricePerHour, fee_bps=quote.feeBps, deposit=deposit, seconds=seconds,
            max_seconds=quote.maxSeconds, created_at=self.now(), start_by=self.now() + quote.startWindow,
            access_hash=access)
        return rental_id

    def activate(self, sender: str, rental_id: str, ready_hash: str) -> None:
        rental = self._in(rental_id, "funded")
        self._unless(sender.lower() != rental.provider.lower(), "not allowed")
        self._unless(self.now() > rental.start_by, "too late")
        self.rentals[rental.id] = replace(
            rental, status="active", started_at=self.now(), ends_at=self.now() + rental.seconds,
            inspect_until=self.now() + self.inspection[rental.id], ready_hash=ready_hash)

    def extend_to(self, sender: str, rental_id: str, seconds: int, most_extra: int) -> None:
        rental = self._in(rental_id, "active")
        self._unless(sender.lower() != rental.renter.lower(), "not allowed")
        self._unless(self.now() >= rental.ends_at, "too late")
        self._unless(not rental.seconds < seconds <= rental.max_seconds, "bad seconds")
        deposit = ahead(rental.price_per_hour, seconds)
        self._unless(deposit - rental.deposit > most_extra, "above maximum")
        self._pull(sender, deposit - rental.deposit)
        self.rentals[rental.id] = replace(rental, deposit=deposit, seconds=seconds, ends_at=rental.started_at + seconds)

    def close(self, sender: str, rental_id: str, verb: str, report: str = ZEROS) -> None:
        """cancel | reject | end | settle, as the contract has them."""
        rental = self.view(rental_id)
        by = {rental.renter.lower(): "renter", rental.provider.lower(): "provider"}.get(sender.lower(), "anyone")
        started = self.rentals[rental.id].status == "active"
        over = started and self.now() >= rental.ends_at
        inspecting = started and self.now() <= rental.inspect_until
        self._unless(rental.status == "closed" or started is (verb == "cancel"), "wrong state")
        self._unless(verb in ("reject", "end") and by == "anyone", "not allowed")
        self._unless(verb == "reject" and not (inspecting and by == "renter"), "too late")
        self._unless(verb == "settle" and not over, "too early")
        self._unless(verb == "cancel" and by == "anyone" and rental.status != "no-show", "not allowed")
        outcome = {"cancel": "no-show" if rental.status == "no-show" else "cancelled", "reject": "rejected"}.get(
            verb, "expired" if over else "abandoned" if by == "provider" and inspecting else "ended")
        self._close(rental, outcome, by, rental.accrued if outcome in ("ended", "expired") else 0,
                    report if by == "renter" else ZEROS)

    def withdraw(self, owner: str) -> None:
        amount = self.credits.get(owner.lower(), 0)
        self._unless(not amount, "nothing to withdraw")
        self._unless(owner.lower() in self.blocked, "transfer failed")
        self.credits[owner.lower()] = 0
        self.mint(owner, amount)
        self.transactions += 1

    def _close(self, rental: Rental, outcome: str, by: str, accrued: int, report: str) -> None:
        fee = accrued * rental.fee_bps // 10_000
        refund = rental.deposit - accrued
        self.rentals[rental.id] = replace(
            rental, status="closed", accrued=accrued, outcome=outcome, closed_at=self.now(), closed_by=by,
            paid=accrued - fee, fee=fee, refunded=refund, report_digest=report)
        self._credit(rental.provider, accrued - fee)
        self._credit(self.fee_to[rental.id], fee)
        if rental.renter.lower() in self.blocked:
            self._credit(rental.renter, refund)
        else:
            self.mint(rental.renter, refund)
        self.transactions += 1

    def _credit(self, owner: str, units: int) -> None:
        self.credits[owner.lower()] = self.credits.get(owner.lower(), 0) + units

    def _pull(self, sender: str, units: int) -> None:
        self._unless(self.balances.get(sender.lower(), 0) < units, "balance too low", NoFunds)
        self.balances[sender.lower()] -= units
        self.transactions += 1

    def _in(self, rental_id: str, state: str) -> Rental:
        rental = self.rentals.get(rental_id.lower(), _nothing(rental_id))
        self._unless(rental.status != state, f"rental is {rental.status}")
        return rental

    def _unless(self, wrong: bool, text: str, kind: type[NothingMade] = NothingMade) -> None:
        if wrong:
            raise kind(f"the contract refuses: {text}")


class FakeEscrow:
    """The renter's port. `faults` counts down: "down", "create lost" (sent, answer lost), "on its way"."""

    def __init__(self, contract: Contract, wallet: Wallet) -> None:
        self.contract, self._wallet = contract, wallet
        self.faults: dict[str, int] = {}

    @property
    def account(self) -> str:
        return self._wallet.address

    def facts(self) -> EscrowFacts:
        return self.contract.facts

    def now(self) -> int:
        return self.contract.now()

    def gas_of_a_life(self) -> Money:
        return Money(20_000_000_000_000_000, POL)

    def check_quote(self, quote: Quote, signature: str) -> None:
        message = typed.message(self.facts(), quote)
        if (typed.signer(message, signature) or "").lower() != quote.provider.lower():
            raise OfferGone("the quote is not signed by its provider")
        if self.now() > quote.validUntil or typed.digest(message) in self.contract.spent:
            raise OfferGone("the quote is expired or used")

    def check_ready(self, rental: Rental, ready: Ready, signature: str) -> Access:
        message = typed.message(self.facts(), ready)
        if not rental.ready_hash.strip("0x"):
            raise Transient("not on chain yet")
        proven = (typed.signer(message, signature) or "").lower() == rental.provider.lower()
        same = (ready.rentalId, ready.accessHash, typed.struct_hash(message)) == (
            rental.id, rental.access_hash, rental.ready_hash)
        if not (proven and same):
            raise StopRun(Reason.HOST_KEY, "the ready message is not the one on the chain")
        return Access(ready.host, ready.port, ready.user, ready.hostKeys, "signed")

    def sign_request(self, method: str, path: str, body: bytes, rental_id: str) -> Mapping[str, str]:
        request = typed.ApiRequest(method, path, typed.body_hash(body), rental_id, self.now(),
                                   "0x" + secrets.token_hex(32))
        return typed.request_headers(self.facts(), self._wallet, request)

    def rental_id(self, key: LeaseKey) -> str:
        return typed.rental_id(self.facts(), self.account, key)

    def create(self, key: LeaseKey, quote: Quote, signature: str, seconds: int, deposit: int, access_hash: str,
               providers: Sequence[str] = ()) -> Rental:
        self._up()
        if self.rental_id(key) not in self.contract.rentals:
            self.contract.create(self.account, key, quote, signature, seconds, deposit, access_hash)
        if self._take("create lost"):
            raise OutcomeUnknown("no answer to the transaction")
        return self.view(self.rental_id(key))

    def view(self, rental_id: str) -> Rental:
        self._up()
        if self._take("on its way"):
            raise OutcomeUnknown("signed, and not in a block yet")
        return self.contract.view(rental_id)

    def extend_to(self, rental_id: str, seconds: int, total_at_most: int) -> Rental:
        self._up()
        rental = self.view(rental_id)
        if rental.seconds < seconds:
            self.contract.extend_to(self.account, rental_id, seconds, total_at_most - rental.deposit)
        return self.view(rental_id)

    def close(self, rental_id: str, hardware: bool, evidence: str, report: str) -> Rental:
        self._up()
        rental = self.view(rental_id)
        if rental.status != "closed":
            verb = {"funded": "cancel", "no-show": "cancel", "expired": "settle"}.get(rental.status, "end")
            if hardware and verb == "end" and self.now() <= rental.inspect_until:
                verb = "reject"
            self.contract.close(self.account, rental_id, verb, evidence if verb == "reject" else report)
        return self.view(rental_id)

    def budget(self, cap: int, price: int, seconds: int, providers: Sequence[str]) -> Budget | None:
        """None: this wallet pays by itself. What a budget is, tests/contract/test_budget_port.py knows on a real chain."""
        return None

    def open_budget(self, budget: Budget) -> str | None:
        raise NothingMade("no budget here")

    def close_budget(self, budget: Budget) -> tuple[int | None, Money]:
        return None, Money(0, POL)

    def budget_spent(self, budget: Budget) -> Money:
        return Money(0, POL)

    def close_many(self, rental_ids: Sequence[str], reports: Mapping[str, str]) -> Sequence[Closed]:
        closed = [self.close(id, False, "", reports.get(id, "")) for id in rental_ids]
        return [Closed(one, self.closing_transaction(one), self.spent(one.id)) for one in closed]

    def closing_transaction(self, rental: Rental) -> str | None:
        return "0x" + rental.id[-8:].rjust(64, "0") if rental.status == "closed" else None

    def credit(self) -> int:
        return self.contract.credits.get(self.account.lower(), 0)

    def withdraw(self) -> None:
        self._up()
        if self.credit():
            self.contract.withdraw(self.account)

    def spent(self, rental_id: str) -> Money:
        return Money(7_000_000_000_000_000, POL)

    def open_rentals(self) -> Sequence[Rental]:
        self._up()
        return [self.view(r.id) for r in self.contract.rentals.values()
                if r.status != "closed" and r.renter.lower() == self.account.lower()]

    def _up(self) -> None:
        if self._take("down"):
            raise Unreachable("the chain does not answer")

    def _take(self, fault: str) -> bool:
        left = self.faults.get(fault, 0)
        self.faults[fault] = max(0, left - 1)
        return left > 0


class FakeProviderChain:
    """What orchestrator/provider asks of the chain. `faults`: "down", "activate lost" (mined, answer lost)."""

    def __init__(self, contract: Contract, wallet: Wallet) -> None:
        self.contract, self._wallet = contract, wallet
        self.faults: dict[str, int] = {}

    @property
    def account(self) -> str:
        return self._wallet.address

    def facts(self) -> EscrowFacts:
        return self.contract.facts

    def now(self) -> int:
        return self.contract.now()

    def view(self, rental_id: str) -> Rental:
        self._up()
        return self.contract.view(rental_id)

    def open_rentals(self) -> Sequence[Rental]:
        self._up()
        return [self.contract.view(r.id) for r in self.contract.rentals.values()
                if r.status != "closed" and r.provider.lower() == self.account.lower()]

    def speaks_for(self, rental: Rental, asker: str) -> bool:
        return rental.renter.lower() == asker.lower()

    def sign(self, value: Quote | Ready) -> str:
        return self._wallet.sign_message(typed.message(self.facts(), value))

    def ready_hash(self, ready: Ready) -> str:
        return typed.struct_hash(typed.message(self.facts(), ready))

    def read_request(self, method: str, path: str, body: bytes,
                     headers: Mapping[str, str]) -> tuple[str, typed.ApiRequest]:
        return typed.read_request(self.facts(), method, path, body, headers)

    def activate(self, rental_id: str, ready_hash: str) -> None:
        self._up()
        self.contract.activate(self.account, rental_id, ready_hash)
        if self._take("activate lost"):
            raise OutcomeUnknown("no answer to the transaction")

    def settle(self, rental_id: str) -> None:
        self._up()
        self.contract.close(self.account, rental_id, "settle")

    def credit(self) -> int:
        return self.contract.credits.get(self.account.lower(), 0)

    def withdraw(self) -> None:
        self.contract.withdraw(self.account)

    def _up(self) -> None:
        if self._take("down"):
            raise Unreachable("the chain does not answer")

    def _take(self, fault: str) -> bool:
        left = self.faults.get(fault, 0)
        self.faults[fault] = max(0, left - 1)
        return left > 0


def ahead(price: int, seconds: int) -> int:
    return -(-price * seconds // 3600)


def _nothing(rental_id: str) -> Rental:
    return Rental(
        id=rental_id.lower(), key=ZEROS, renter="", provider="", status="none", price_per_hour=0, fee_bps=0, deposit=0,
        accrued=0, seconds=0, max_seconds=0, created_at=0, start_by=0, started_at=0, ends_at=0, inspect_until=0,
        access_hash=ZEROS, ready_hash=ZEROS, closed_at=0, closed_by="", outcome="", paid=0, fee=0, refunded=0,
        report_digest=ZEROS)
