"""The port Escrow on a real chain: rent, extend and close through the contract, by its own views and rules.

Reads storage, not logs, so an empty laptop with the wallet sees everything. Every write asks first whether it is
done already, and goes through the sender, which makes each intent happen at most once; the rental's id, chosen by
the renter, is the second lock. Knows no market, no run and no journal.
"""
from __future__ import annotations

import secrets
import time
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from ..domain.escrow import Budget, EscrowFacts, OpenBudget, Quote, Ready, Rental
from ..domain.lease import Access
from ..domain.money import POL, Money
from ..domain.names import LeaseKey
from ..errors import NothingMade, OfferGone, OutcomeUnknown, Refused, Unreachable
from ..second_row import Closed, Outbox
from . import budgets, checks, codecheck, contracts, fees, preflight, typed, views
from .budgets import Budgets
from .bulk import BulkSender
from .closing import VERBS as _CLOSING
from .closing import close_all, closing_call, word
from .networks import Limit
from .refusals import RentalExists, TooLate, WrongState
from .rpc import Contract, Rpc
from .signer import Owner, Signer

# Measured on the lab's chain: approve and create, approve and extendTo, end. For the estimate that is shown before
# paying, never for sending.
GAS_OF_A_LIFE = 56_000 + 308_000 + 56_000 + 69_000 + 116_000
_PAGE = 50


class ChainEscrow:
    """One wallet, one escrow, one chain node. The chain is not asked before the first question. `owner`: whose money it is,
    where that is not the wallet; then a budget pays, and the wallet is the second key that may spend it."""

    def __init__(self, rpc: Rpc, wallet: Signer, outbox: Outbox, facts: EscrowFacts, sender: BulkSender | None = None,
                 limit: Limit | None = None, owner: Owner | None = None) -> None:
        self._rpc, self._wallet, self._expected, self._checked = rpc, wallet, facts, False
        self._limit = limit
        self._policy = fees.policy_for(facts.chain_id)
        self._sender = sender or BulkSender(rpc, wallet, outbox, facts.chain_id, self._policy)
        self._owner = owner
        self._budgets = Budgets(rpc, facts, owner, wallet.address, self._sender, self._policy, limit) if owner else None

    # ---- what it is ----

    @property
    def account(self) -> str:
        return self._owner.address if self._owner else self._wallet.address

    def facts(self) -> EscrowFacts:
        if not self._checked:
            codecheck.check(self._rpc, self._expected)
            self._checked = True
        return self._expected

    def now(self) -> int:
        """The newest block's time, or the next one's where the node says it: a quiet chain's clock goes on too."""
        newest = self._rpc.block("latest").timestamp
        try:
            return max(newest, self._rpc.block("pending").timestamp)
        except Unreachable:
            return newest

    def gas_of_a_life(self) -> Money:
        bid, base = fees.today(self._rpc, self._policy)
        return Money((budgets.GAS_OF_A_LIFE if self._budgets else GAS_OF_A_LIFE) * (base + bid.tip), POL)

    # ---- what others signed, and what we sign ----

    def check_quote(self, quote: Quote, signature: str) -> None:
        checks.quote(self.facts(), self.account, quote, signature, self.now())
        if self._escrow.read("quoteSpent", quote.provider, quote.salt):
            raise OfferGone("the quote was used or taken back")

    def check_ready(self, rental: Rental, ready: Ready, signature: str) -> Access:
        return checks.ready(self.facts(), rental, ready, signature, self.now())

    def sign_request(self, method: str, path: str, body: bytes, rental_id: str) -> Mapping[str, str]:
        request = typed.ApiRequest(method, path, typed.body_hash(body), rental_id, int(time.time()),
                                   "0x" + secrets.token_hex(32))
        return typed.request_headers(self._expected, self._wallet, request)

    # ---- rentals ----

    def rental_id(self, key: LeaseKey) -> str:
        return typed.rental_id(self._expected, self.account, key)

    def view(self, rental_id: str) -> Rental:
        """Where there is none, but a deposit for it was signed that may still happen, that is brought to its end first:
        "none" is a proof. OutcomeUnknown while it cannot be."""
        found = self._read(rental_id)
        if found.status == "none" and self._sender.signed(f"create:{rental_id}"):
            with self._sender.turn(rental_id):
                paid = self._sender.outcome(f"create:{rental_id}")
            return self._shown(rental_id) if paid and paid.ok else self._read(rental_id)
        return found

    def _shown(self, rental_id: str) -> Rental:
        """A rental whose deposit is in a block. OutcomeUnknown where the node does not show what it did: it is behind, or
        what it says of the block is not so."""
        found = self._read(rental_id)
        if found.status == "none":
            raise OutcomeUnknown(f"{self._rpc.name} has the deposit in a block, but does not show rental {rental_id}",
                                 hint="a second address under `rpc:` in settings.yaml tells who is right")
        return found

    def create(self, key: LeaseKey, quote: Quote, signature: str, seconds: int, deposit: int, access_hash: str,
               providers: Sequence[str] = ()) -> Rental:
        """`deposit`: the most it may cost; what the quote asks for is taken."""
        id = self.rental_id(key)
        with self._sender.turn(id):
            found = self._read(id)
            if found.status != "none":
                return found
            self.check_quote(quote, signature)
            due = _price_ahead(quote.pricePerHour, seconds)
            if due > deposit:
                raise NothingMade(f"{seconds} s cost {due} base units, {deposit} were allowed")
            self._within_limit(due)
            call = word(key), struct(quote), bytes.fromhex(signature[2:]), seconds, due, word(access_hash)
            data = self._encode("create", *call) if self._budgets is None else self._encode(
                "createFromBudget", *call, [to_checksum(one) for one in providers])
            self._allow(id, due)
            self._open(id, data)
        return self._shown(id)

    def _open(self, id: str, data: bytes) -> None:
        try:
            self._sender.send(f"create:{id}", self._expected.escrow, data)
        except RentalExists:
            pass                         # then it is there, which is all that was asked for
        except TooLate as late:
            raise OfferGone(str(late)) from late

    def extend_to(self, rental_id: str, seconds: int, total_at_most: int) -> Rental:
        """To an absolute total; there already, or beyond: as it is. NothingMade if it would cost more in total."""
        with self._sender.turn(rental_id):
            found = self._must_exist(rental_id)
            if found.seconds >= seconds:
                return found
            total = _price_ahead(found.price_per_hour, seconds)
            if total > total_at_most:
                raise NothingMade(f"{seconds} s would cost {total} base units in all, {total_at_most} were allowed")
            self._within_limit(total)
            data = self._encode("extendTo", rental_id, seconds, total_at_most - found.deposit)
            self._allow(rental_id, total - found.deposit)
            self._sender.send(self._sender.fresh_key(f"extend:{rental_id}"), self._expected.escrow, data)
        return self._read(rental_id)

    def close(self, rental_id: str, hardware: bool, evidence: str, report: str) -> Rental:
        with self._sender.turn(rental_id):
            for _ in range(len(_CLOSING)):           # somebody may move it while we sign, but only forward
                found = self._must_exist(rental_id)
                if found.status == "closed":
                    return found
                reject = hardware and self.now() <= found.inspect_until
                verb, *rest = closing_call(found, reject, evidence, report)
                data = self._encode(verb, rental_id, *rest)
                try:
                    self._sender.send(f"{verb}:{rental_id}", self._expected.escrow, data)
                    break
                except (WrongState, TooLate):
                    continue
        return self._read(rental_id)

    def close_many(self, rental_ids: Sequence[str], reports: Mapping[str, str]) -> Sequence[Closed]:
        found = close_all(self._rpc, self, self._sender, self.rentals(rental_ids), reports)
        return [Closed(one.rental, one.receipt.hash if one.receipt else None,
                       Money(one.receipt.gas_used * one.receipt.gas_price if one.receipt else 0, POL))
                for one in found if one.rental.status == "closed"]

    def closing_transaction(self, rental: Rental) -> str | None:
        ours = self._sender.mined_hash(f"{verb}:{rental.id}" for verb in _CLOSING)
        if ours is not None or not rental.closed_at:
            return ours
        try:
            block = self._block_at(rental.closed_at)
            found = self._rpc.logs(self._expected.escrow, (_event_topic("RentalClosed"), rental.id), block, block + 4)
        except (Unreachable, Refused):
            return None                  # nodes limit this as they like, and it is only a hint
        return found[-1] if found else None

    def open_rentals(self) -> Sequence[Rental]:
        self.facts()
        at = self._rpc.block("latest").number
        ids: list[str] = []
        cursor = 0
        while True:
            page, cursor = self._escrow.read("openRentals", self.account, False, cursor, _PAGE, at=at)
            ids += ["0x" + bytes(one).hex() for one in page]
            if not cursor:
                break
        return self.rentals(ids, at)

    def rentals(self, ids: Sequence[str], at: int | str = "latest") -> Sequence[Rental]:
        """Many at once, as they stand at one block."""
        now = self.now()
        return [views.rental(id, raw, now) for first in range(0, len(ids), _PAGE)
                for id, raw in self._many(ids[first:first + _PAGE], at)]

    # ---- money ----

    def credit(self) -> int:
        self.facts()
        return int(self._escrow.read("creditOf", self.account))

    def withdraw(self) -> None:
        with self._sender.turn("withdraw"):
            if self.credit():
                data = self._encode("withdrawFor", self.account)
                self._sender.send(self._sender.fresh_key("withdraw"), self._expected.escrow, data)

    def spent(self, rental_id: str) -> Money:
        keys = [f"{verb}:{rental_id}" for verb in ("create", *_CLOSING)]
        return Money(self._sender.spent(keys, [f"approve:{rental_id}", f"extend:{rental_id}"]), POL)

    # ---- a budget, where the owner's wallet does not send ----

    def budget(self, cap: int, price: int, seconds: int, providers: Sequence[str]) -> Budget | None:
        return self._budgets.terms(cap, price, self.now() + seconds, providers) if self._budgets else None

    def open_budget(self, budget: Budget) -> str | None:
        self.facts()
        return self._must_have_budgets().open(budget)

    def close_budget(self, budget: Budget) -> tuple[int | None, Money]:
        return self._must_have_budgets().close(budget, any(rental.budget for rental in self.open_rentals()))

    def budget_spent(self, budget: Budget) -> Money:
        return self._must_have_budgets().spent(budget)

    def close_any_budget(self) -> int | None:
        """Whatever budget of the account is open, if this wallet may close it: what was in it. None: there is none."""
        return budgets.close_any(self._escrow, self._sender, self.account)

    def session_of(self, rental: Rental) -> str:
        """The key of the budget that pays for it; "" once its renter has opened a later one, or if none does."""
        found = self._escrow.read("budgetOf", rental.renter)
        return str(found.session) if rental.budget and found.number == rental.budget else ""

    def open_budget_now(self) -> OpenBudget | None:
        return budgets.now_open(self._escrow, self.account)

    def _must_have_budgets(self) -> Budgets:
        if self._budgets is None:
            raise Refused("this budget was opened by another kind of wallet", hint="as it was then: `wallet: browser`, and "
                                                                              "`account:`, in settings.yaml")
        return self._budgets

    def _within_limit(self, total: int) -> None:
        if self._limit:
            self._limit.check(total)

    def _allow(self, rental_id: str, amount: int) -> None:
        """Let the escrow take exactly this, in our turn, so that nobody of ours takes it for something else. A budget is
        there already."""
        if self._budgets:
            return self._budgets.must_hold(amount)
        if preflight.deposit(self._rpc, self._expected, self._policy, self.account, amount) < amount:
            data = self._token.encode("approve", self._expected.escrow, amount)
            self._sender.send(self._sender.fresh_key(f"approve:{rental_id}"), self._expected.token, data)

    # ---- reading ----

    @cached_property
    def _escrow(self) -> Contract:
        return self._rpc.contract(self._expected.escrow, contracts.load("RentalEscrow").abi)

    @cached_property
    def _token(self) -> Contract:
        return self._rpc.contract(self._expected.token, contracts.usdc().token_abi)

    def _encode(self, name: str, *arguments: Any) -> bytes:
        return self._escrow.encode(name, *arguments)

    def _read(self, rental_id: str) -> Rental:
        self.facts()
        return views.rental(rental_id, self._escrow.read("rental", rental_id), self.now())

    def _must_exist(self, rental_id: str) -> Rental:
        found = self._read(rental_id)
        if found.status == "none":
            raise NothingMade(f"there is no rental {rental_id}")
        return found

    def _many(self, ids: Sequence[str], at: int | str) -> Sequence[tuple[str, Any]]:
        return list(zip(ids, self._escrow.read("rentals", ids, at=at), strict=True))

    def _block_at(self, timestamp: int) -> int:
        """The first block that is not older."""
        low, high = 0, self._rpc.block("latest").number
        while low < high:
            middle = (low + high) // 2
            if self._rpc.block(middle).timestamp < timestamp:
                low = middle + 1
            else:
                high = middle
        return low


def connect(urls: Sequence[str], wallet: Signer, outbox: Outbox, facts: EscrowFacts, limit: Limit | None = None,
            owner: Owner | None = None) -> ChainEscrow:
    """What the wiring calls. `facts` and `limit` from the settings."""
    return ChainEscrow(Rpc(urls, facts.chain_id), wallet, outbox, facts, limit=limit, owner=owner)


def _price_ahead(per_hour: int, seconds: int) -> int:
    """As the contract rounds: up."""
    return -(-per_hour * seconds // 3600)


def struct(quote: Quote) -> tuple[Any, ...]:
    """As the contract's functions take it."""
    addresses = ("provider", "renter", "feeRecipient")
    return tuple(to_checksum(getattr(quote, name)) if name in addresses else getattr(quote, name)
                 for name in Quote.__dataclass_fields__)


def to_checksum(address: str) -> str:
    from eth_utils.address import to_checksum_address

    return str(to_checksum_address(address))


def _event_topic(name: str) -> str:
    from eth_utils.abi import event_abi_to_log_topic

    entry: Any = next(e for e in contracts.load("RentalEscrow").abi if e["type"] == "event" and e["name"] == name)
    return "0x" + bytes(event_abi_to_log_topic(entry)).hex()
