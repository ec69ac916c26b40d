"""A budget in the escrow: opened with the owner's one signature, closed when the run is over, by this laptop's second key.

The second key (the session) can rent from the listed providers, extend, end, and send money home to the owner; nothing
else, whoever has it. One budget for an owner at a time. Asks the chain first, so every verb may be repeated; a person is
asked only for what is not signed yet, and never with the wallet's lock in hand.
"""
from __future__ import annotations

import secrets
from collections.abc import Sequence
from functools import cached_property
from typing import Any

from ..domain.escrow import Budget, EscrowFacts, OpenBudget
from ..domain.money import POL, USDC, Money
from ..errors import NoFunds, NothingMade, Refused
from . import authorization, contracts, fees, preflight, typed
from .bulk import BulkSender
from .home import coin_home
from .networks import Limit
from .refusals import NoBudget
from .rpc import Contract, Rpc
from .signer import Owner

# Measured on the lab's chain, see tests/escrow/gas.json: openBudget, createFromBudget, extendTo, end, closeBudget.
GAS_OF_A_LIFE = 188_000 + 172_000 + 42_000 + 94_000 + 62_000
_KEYSTORE_HINT = "an ordinary account; or a keystore wallet: no `wallet: browser` in settings.yaml, then sealtune wallet new"
_OTHER_HINT = "sealtune rentals, sealtune wallet show; sealtune wallet sweep closes it"


class Budgets:
    """Of one owner, by one session key."""

    def __init__(self, rpc: Rpc, facts: EscrowFacts, owner: Owner, session: str, sender: BulkSender, policy: fees.Policy,
                 limit: Limit | None = None) -> None:
        self._rpc, self._facts, self._owner, self._session = rpc, facts, owner, session
        self._sender, self._policy, self._limit = sender, policy, limit

    def terms(self, cap: int, price: int, expiry: int, providers: Sequence[str]) -> Budget:
        return Budget(self._owner.address, self._session, cap, price, expiry, typed.providers_hash(providers),
                      "0x" + secrets.token_hex(32))

    # ---- opening ----

    def open(self, budget: Budget) -> str | None:
        key = f"open-budget:{budget.salt}"
        with self._sender.turn(budget.salt):
            sent = self._sender.outcome(key) if self._sender.signed(key) else None
            if sent is not None and sent.ok:
                return sent.hash
            if self._is_open(budget):
                return None
            self._must_be_possible(budget)
        signature = self._signature(budget)
        with self._sender.turn(budget.salt):
            data = self._escrow.encode("openBudget", _struct(budget), bytes.fromhex(signature[2:]))
            return self._sender.send(key, self._facts.escrow, data).hash

    def _signature(self, budget: Budget) -> str:
        try:
            of_token = authorization.domain(self._rpc, self._facts)
            return self._owner.sign("Pay for this run.", [authorization.document(self._facts, of_token, budget)])[0]
        except Refused as no:
            raise NothingMade(f"{no}; nothing was paid", hint=no.hint) from no

    def _must_be_possible(self, budget: Budget) -> None:
        """NothingMade, before the person is asked for anything."""
        if (budget.owner.lower(), budget.session.lower()) != (self._owner.address.lower(), self._session.lower()):
            raise NothingMade(f"this budget is one of {budget.owner}, the wallet is {self._owner.address}",
                              hint="check `account:` in settings.yaml")
        if self._limit:
            self._limit.check(budget.cap)
        if self._rpc.code(budget.owner):
            raise NothingMade(f"{budget.owner} is a contract account, or one that was made smart (EIP-7702): USDC would ask "
                              "its code and not its key, so no signature of it pays", hint=_KEYSTORE_HINT)
        if (other := self.now_open(budget.owner)) is not None:
            raise NothingMade(f"{budget.owner} has an open budget already, with {Money(other.left, USDC)} in it: another "
                              "run goes on, or one was lost", hint=_OTHER_HINT)
        number = typed.digest(typed.message(self._facts, budget))
        if self._token.read("authorizationState", budget.owner, number):
            raise NothingMade("this authorization was used or taken back already")
        preflight.budget(self._rpc, self._facts, self._policy, budget, GAS_OF_A_LIFE)

    # ---- closing ----

    def close(self, budget: Budget, rentals_open: bool) -> tuple[int | None, Money]:
        """`rentals_open`: some that only this key can end; its coin stays here then."""
        left = self._close(budget)
        if rentals_open or self.now_open(budget.owner) is not None:
            return left, Money(0, POL)   # the coin serves another budget of this key by now
        with self._sender.turn("sweep:"):
            return left, coin_home(self._rpc, self._sender, self._policy, self._session, budget.owner)[0]

    def _close(self, budget: Budget) -> int | None:
        opening, closing = f"open-budget:{budget.salt}", f"close-budget:{budget.salt}"
        with self._sender.turn(budget.salt):
            if self._sender.signed(opening):
                self._sender.outcome(opening)        # what is on its way arrives, or never will
            if self._sender.mined_hash([closing]) or not self._is_open(budget):
                return None
            found = self.now_open(budget.owner)
            try:
                self._sender.send(closing, self._facts.escrow, self._escrow.encode("closeBudget", budget.owner))
            except NoBudget:
                return None              # somebody was faster: the owner, or anyone after its end
        return found.left if found else None

    def spent(self, budget: Budget) -> Money:
        return Money(self._sender.spent([f"open-budget:{budget.salt}", f"close-budget:{budget.salt}"], ()), POL)

    # ---- looking ----

    def now_open(self, owner: str) -> OpenBudget | None:
        return now_open(self._escrow, owner)

    def must_hold(self, amount: int) -> None:
        """NoFunds unless the open budget is this key's and reaches."""
        found = self.now_open(self._owner.address)
        if found is None or found.session.lower() != self._session.lower():
            raise NoFunds(f"{self._owner.address} has no open budget for this laptop's key: it was closed, or ran out",
                          hint="sealtune run signs a new one")
        if found.left < amount:
            raise NoFunds(f"the budget holds {Money(found.left, USDC)}, {Money(amount, USDC)} are needed",
                          hint="raise `budget:` in the run file")

    def _is_open(self, budget: Budget) -> bool:
        raw = self._escrow.read("budgetOf", budget.owner)
        return (raw.session.lower(), raw.expiry, raw.maxPricePerHour, "0x" + bytes(raw.providersHash).hex()) == (
            budget.session.lower(), budget.expiry, budget.maxPricePerHour, budget.providersHash)

    @cached_property
    def _escrow(self) -> Contract:
        return self._rpc.contract(self._facts.escrow, contracts.load("RentalEscrow").abi)

    @cached_property
    def _token(self) -> Contract:
        return self._rpc.contract(self._facts.token, contracts.usdc().token_abi)


def now_open(escrow: Contract, owner: str) -> OpenBudget | None:
    raw = escrow.read("budgetOf", owner)
    return OpenBudget(str(raw.session), int(raw.left), int(raw.expiry)) if raw.expiry else None


def close_any(escrow: Contract, sender: BulkSender, owner: str) -> int | None:
    """The owner's open budget, whoever opened it: what was in it; None: there is none. NothingMade where this wallet may
    not: it is neither the owner nor the session, and the budget has not run out."""
    with sender.turn("close-budget:"):
        found = now_open(escrow, owner)
        if found is None:
            return None
        sender.send(sender.fresh_key(f"close-budget:{owner}"), escrow.address, escrow.encode("closeBudget", owner))
    return found.left


def _struct(budget: Budget) -> tuple[Any, ...]:
    """As the contract's functions take it."""
    from eth_utils.address import to_checksum_address

    return (to_checksum_address(budget.owner), to_checksum_address(budget.session), budget.cap, budget.maxPricePerHour,
            budget.expiry, budget.providersHash, budget.salt)
