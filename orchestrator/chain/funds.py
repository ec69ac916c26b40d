"""One wallet's money on one chain: what it has, what is locked, and how the rest goes home.

Looking needs no key. Everything is asked of the chain alone, so an empty laptop with the wallet sees all of it.
"""
from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..domain.escrow import ZERO_ADDRESS, EscrowFacts, Rental
from ..domain.evidence import Check
from ..domain.money import POL, USDC, Money
from ..errors import BadInput, Refused
from ..second_row import Outbox
from . import codecheck, contracts, fees, networks
from .bulk import BulkSender
from .closing import Closing, close_all, close_signed
from .create2 import Deployed, deploy
from .escrow import ChainEscrow
from .home import coin_home
from .networks import Limit, Network
from .rpc import Rpc
from .sender import WAIT_S
from .signer import Owner, Signer, checksummed
from .verify import verify

_LIVES = 3                               # so many rentals' gas is worth having: fees rise, and one may have to be ended


@dataclass(frozen=True, slots=True)
class Funds:
    """What a wallet has. `payer`: who pays the gas, which is the account itself, or this laptop's second key for one in a
    browser; `coin` is the payer's. `rentals`: None where the escrow could not be asked, and `why` says the reason."""

    address: str
    payer: str
    network: Network
    usdc: Money
    coin: Money
    bridged: Money                       # of the token that only looks like USDC
    paused: bool                         # nobody can move USDC now
    blacklisted: bool                    # this account cannot move USDC
    rentals: tuple[Rental, ...] | None
    credit: Money | None
    set_aside: Money                     # in a budget, for a run
    why: str = ""

    @property
    def locked(self) -> Money | None:
        return None if self.rentals is None else Money(sum(r.locked for r in self.rentals), USDC)


@dataclass(frozen=True, slots=True)
class Swept:
    """What a sweep sent. `earlier`: one that had been begun before was seen through first. `final`: no reorganisation can
    take back what is in a block by now; until then the same command again sees to it."""

    to: str
    usdc: Money
    coin: Money
    credit: Money
    transactions: tuple[str, ...]
    earlier: bool
    left: Money
    final: bool


class Purse:
    """A wallet on a chain. `facts` need not be those of an escrow that exists already. `owner`: see ChainEscrow."""

    def __init__(self, rpc: Rpc, signer: Signer, outbox: Outbox, facts: EscrowFacts, limit: Limit | None = None,
                 wait_s: float = WAIT_S, owner: Owner | None = None) -> None:
        self._rpc, self._signer, self.facts = rpc, signer, facts
        self.network = networks.network(facts.chain_id)
        self._policy = fees.policy_for(facts.chain_id)
        self._sender = BulkSender(rpc, signer, outbox, facts.chain_id, self._policy, wait_s)
        self.escrow = ChainEscrow(rpc, signer, outbox, facts, self._sender, limit=limit, owner=owner)
        self._owner = owner

    @property
    def address(self) -> str:
        """Whose money it is."""
        return self.escrow.account

    @property
    def payer(self) -> str:
        """Who pays the gas."""
        return self._signer.address

    # ---- looking ------------------------------------------------------------------------------------------

    def funds(self) -> Funds:
        """Refused: another chain, or a token that is not its USDC. Unreachable."""
        codecheck.must_be_token(self._rpc, self.facts)
        rentals, credit, why = self._in_escrow()
        read = self._token(self.facts.token)
        budget = self.escrow.open_budget_now() if self._owner and rentals is not None else None
        return Funds(self.address, self.payer, self.network, Money(read("balanceOf", self.address), USDC),
                     Money(self._rpc.balance(self.payer), POL), self._bridged(), bool(read("paused")),
                     bool(read("isBlacklisted", self.address)), rentals, credit, Money(budget.left if budget else 0, USDC),
                     why)

    def gas_wanted(self) -> Money:
        """POL to have before a run: that of several rentals at today's fees, since fees rise."""
        return Money(_LIVES * self.escrow.gas_of_a_life().units, POL)

    def _in_escrow(self) -> tuple[tuple[Rental, ...] | None, Money | None, str]:
        try:
            return tuple(self.escrow.open_rentals()), Money(self.escrow.credit(), USDC), ""
        except Refused as no:
            return None, None, str(no)

    def _bridged(self) -> Money:
        if not self.network.bridged:
            return Money(0, USDC)
        return Money(self._token(self.network.bridged)("balanceOf", self.address), USDC)

    def _token(self, address: str) -> Callable[..., Any]:
        return self._rpc.contract(address, contracts.usdc().token_abi).read

    def verify(self) -> Sequence[Check]:
        return verify(self._rpc, self.facts)

    # ---- acting -------------------------------------------------------------------------------------------

    def deploy(self) -> Deployed:
        return deploy(self._rpc, self._sender, self.facts.chain_id, self.facts.token)

    def close(self, rentals: Sequence[Rental]) -> Sequence[Closing]:
        return close_all(self._rpc, self.escrow, self._sender, rentals, {})

    def close_signed(self, rentals: Sequence[Rental], signatures: Sequence[str]) -> Sequence[Closing]:
        """Another wallet's rentals, by its signatures; this one pays the gas."""
        return close_signed(self._rpc, self.escrow, self._sender, rentals, signatures)

    def target(self, text: str) -> str:
        """Where a sweep may go, with its checksum. BadInput for a typing error, or for where money would be lost."""
        if self._owner:
            if text and checksummed(text) != self.address:
                raise BadInput(f"this laptop's second key sends only home, to {self.address}", hint="leave --to away")
            return self.address
        if not text:
            raise BadInput("--to is missing: where all of it goes", hint="sealtune wallet sweep --to 0x…")
        return target(text, {self.address: "the wallet itself", ZERO_ADDRESS: "nobody",
                             self.facts.token: "the token's own contract", self.facts.escrow: "the escrow",
                             self.network.bridged: "a token's contract"})

    def sweep(self, to: str) -> Swept:
        """All USDC, a credit in the escrow and a budget included, then the coin less gas; an owner's second key sends home.
        Again after a crash: what was begun is seen through, and nothing is sent twice. Refused while rentals are open:
        their refunds come here, and ending them takes gas."""
        to, found = self.target(to), self.funds()
        if found.rentals:
            raise Refused(f"{len(found.rentals)} rentals of this wallet are open",
                          hint="sealtune rentals; end them first: sealtune end --leaked")
        credit = found.credit or Money(0, USDC)
        if credit.units:
            self.escrow.withdraw()
        home = self.escrow.close_any_budget() or 0 if self._owner else 0
        earlier = self._sender.unfinished("sweep:")
        with self._sender.turn("sweep:"):
            usdc, first = self._sweep_usdc(to)
            coin, second = coin_home(self._rpc, self._sender, self._policy, self.payer, to)
        left = Money(self._rpc.balance(self.payer), POL)
        return Swept(to, usdc + Money(home, USDC), coin, credit, (*first, *second), earlier, left,
                     not self._sender.unfinished("sweep:"))

    def _sweep_usdc(self, to: str) -> tuple[Money, tuple[str, ...]]:
        amount = Money(self._token(self.facts.token)("balanceOf", self.payer), USDC)
        if not amount.units:
            return amount, ()
        token = self._rpc.contract(self.facts.token, contracts.usdc().token_abi)
        key = self._sender.fresh_key("sweep:usdc")
        return amount, (self._sender.send(key, self.facts.token, token.encode("transfer", to, amount.units)).hash,)


def connect(urls: Sequence[str], signer: Signer, outbox: Outbox, facts: EscrowFacts, limit: Limit | None = None,
            owner: Owner | None = None) -> Purse:
    """What the wiring calls."""
    return Purse(Rpc(urls, facts.chain_id), signer, outbox, facts, limit, owner=owner)


def target(text: str, forbidden: dict[str, str]) -> str:
    """An address as a person typed it, that is none of these."""
    found = checksummed(text)
    for address, what in forbidden.items():
        if address and text.lower() == address.lower():
            raise BadInput(f"{text} is {what}: money sent there would be lost or go in a circle")
    return found
