"""The provider's side of the escrow: sign quotes and Ready messages, activate, settle, withdraw.

It stands on the chain room: reads and checks are the renter's own (chain/escrow.py), transactions go through the same
sender, so an activation whose answer was lost is sent again with the same bytes. The watch sends from one thread; the
HTTP face reads from many, so reads take turns on a connection of their own.
"""
from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..chain import contracts, fees, typed, views
from ..chain.bulk import BulkSender
from ..chain.escrow import ChainEscrow
from ..chain.rpc import Rpc
from ..chain.wallet import Wallet, load_key
from ..domain.escrow import EscrowFacts, Quote, Ready, Rental
from ..errors import NothingMade
from ..journal.outbox import Outbox
from .config import ProviderConfig

PAGE = 50
MOST_OPEN = 1000


class ProviderChain:
    """`escrow` reads; `sender` signs and sends, for the same wallet."""

    def __init__(self, rpc: Rpc, escrow: ChainEscrow, sender: BulkSender, wallet: Wallet) -> None:
        self._rpc, self._escrow, self._sender, self._wallet = rpc, escrow, sender, wallet
        self._reading = threading.Lock()

    @classmethod
    def connect(cls, config: ProviderConfig) -> ProviderChain:
        """Refused when the chain or the contract is not the configured one."""
        wallet, facts = load_key(Path(config.key_file)), config.facts()
        outbox = Outbox(Path(config.state_folder))
        sender = BulkSender(Rpc(config.rpc), wallet, outbox, facts.chain_id, fees.policy_for(facts.chain_id))
        rpc = Rpc(config.rpc)
        chain = cls(rpc, ChainEscrow(rpc, wallet, outbox, facts, sender), sender, wallet)
        chain.facts()
        return chain

    @property
    def account(self) -> str:
        return self._wallet.address

    # ---- reading ------------------------------------------------------------------------------------------

    def facts(self) -> EscrowFacts:
        with self._reading:
            return self._escrow.facts()

    def now(self) -> int:
        with self._reading:
            return self._escrow.now()

    def view(self, rental_id: str) -> Rental:
        with self._reading:
            return self._escrow.view(rental_id)

    def open_rentals(self) -> Sequence[Rental]:
        """The same block for all of it, since a closing reorders the list."""
        with self._reading:
            at, facts = self._rpc.block("latest").number, self._escrow.facts()
            contract = self._rpc.contract(facts.escrow, contracts.load("RentalEscrow").abi)
            found: list[Rental] = []
            cursor, now = 0, self._escrow.now()
            while len(found) < MOST_OPEN:
                ids, cursor = contract.read("openRentals", self.account, True, cursor, PAGE, at=at)
                found += [views.rental("0x" + bytes(id).hex(), raw, now)
                          for id, raw in zip(ids, contract.read("rentals", ids, at=at), strict=True)]
                if not cursor:
                    break
            return found

    def speaks_for(self, rental: Rental, asker: str) -> bool:
        if rental.renter.lower() == asker.lower():
            return True
        with self._reading:
            return rental.budget != 0 and self._escrow.session_of(rental).lower() == asker.lower()

    def credit(self) -> int:
        with self._reading:
            return self._escrow.credit()

    # ---- signing ------------------------------------------------------------------------------------------

    def sign(self, value: Quote | Ready) -> str:
        return self._wallet.sign_message(typed.message(self.facts(), value))

    def ready_hash(self, ready: Ready) -> str:
        return typed.struct_hash(typed.message(self.facts(), ready))

    def read_request(self, method: str, path: str, body: bytes,
                     headers: Mapping[str, str]) -> tuple[str, typed.ApiRequest]:
        return typed.read_request(self.facts(), method, path, body, headers)

    # ---- sending: the watch's thread only -----------------------------------------------------------------

    def activate(self, rental_id: str, ready_hash: str) -> None:
        with self._sender.turn(rental_id):
            rental = self.view(rental_id)
            if rental.status == "active" and rental.ready_hash == ready_hash:
                return
            if rental.status != "funded":
                raise NothingMade(f"rental {rental_id} is {rental.status}, not waiting to begin")
            self._send(f"activate:{rental_id}", "activate", rental_id, ready_hash)

    def settle(self, rental_id: str) -> None:
        with self._sender.turn(rental_id):
            if self.view(rental_id).status == "expired":
                self._send(f"settle:{rental_id}", "settle", rental_id)

    def withdraw(self) -> None:
        with self._sender.turn("withdraw"):
            if self.credit():
                self._send(self._sender.fresh_key("withdraw"), "withdraw")

    def _send(self, key: str, verb: str, *arguments: str) -> None:
        with self._reading:
            facts = self._escrow.facts()
            data = self._rpc.contract(facts.escrow, contracts.load("RentalEscrow").abi).encode(verb, *arguments)
        self._sender.send(key, facts.escrow, data)
