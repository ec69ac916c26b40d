"""A lab's chain with money on it, and the provider's side of a rental, for tests."""
from __future__ import annotations

import contextlib
import hashlib
import secrets
import socket
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.chain import contracts, typed, wallet
from orchestrator.chain.bulk import BulkSender
from orchestrator.chain.escrow import ChainEscrow
from orchestrator.chain.fees import policy_for
from orchestrator.chain.networks import Limit
from orchestrator.chain.rpc import Rpc
from orchestrator.chain.signer import Owner
from orchestrator.chain.wallet import Wallet
from orchestrator.domain.escrow import ZERO_ADDRESS, EscrowFacts, Quote, Ready
from orchestrator.lab import chain
from orchestrator.lab.deploy import deploy, send
from orchestrator.second_row import Outbox

TOOLS = Path(__file__).resolve().parents[2] / ".wheels" / "tools"     # where a fetched anvil is kept between runs
HOST_KEY = "ssh-ed25519 " + "A" * 68


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@dataclass(frozen=True)
class Lab:
    url: str
    folder: Path
    facts: EscrowFacts
    renter: Wallet
    provider: Wallet

    def rpc(self, *question: Any) -> Any:
        return chain.call(self.url, *question)

    def escrow(self, outbox: Outbox, url: str = "", wait_s: float = 10, who: Wallet | None = None,
               facts: EscrowFacts | None = None, owner: Owner | None = None, limit: Limit | None = None) -> ChainEscrow:
        facts, rpc, who = facts or self.facts, Rpc(url or self.url), who or self.renter
        sender = BulkSender(rpc, who, outbox, facts.chain_id, policy_for(facts.chain_id), wait_s)
        return ChainEscrow(rpc, who, outbox, facts, sender, limit=limit, owner=owner)

    def usdc(self, of: str) -> int:
        token = Rpc(self.url).contract(self.facts.token, contracts.usdc().token_abi)
        return int(token.read("balanceOf", of))

    def escrow_read(self, name: str, *arguments: Any) -> Any:
        return Rpc(self.url).contract(self.facts.escrow, contracts.load("RentalEscrow").abi).read(name, *arguments)

    def act(self, who: Wallet, name: str, *arguments: Any) -> None:
        """A transaction of one of the parties, outside the port."""
        rpc = Rpc(self.url)
        escrow = rpc.contract(self.facts.escrow, contracts.load("RentalEscrow").abi)
        send(rpc, who, self.facts.escrow, escrow.encode(name, *arguments))

    def later(self, seconds: int, block: bool = False) -> None:
        self.rpc("evm_increaseTime", seconds)
        if block:
            self.rpc("evm_mine")

    def quote(self, **changes: Any) -> tuple[Quote, str]:
        now = int(self.rpc("eth_getBlockByNumber", "pending", False)["timestamp"], 16)
        plain = Quote(
            provider=self.provider.address, renter=self.renter.address, offerId=a_word(), specHash=a_word(),
            pricePerHour=400_001, feeBps=300, feeRecipient="0x" + "fe" * 20, minSeconds=60, maxSeconds=86_400,
            startWindow=600, inspectionSeconds=900, validUntil=now + 600, salt=a_word())
        quote = replace(plain, **changes)
        return quote, self.provider.sign_message(typed.message(self.facts, quote))

    def ready(self, rental_id: str, access_hash: str, **changes: Any) -> tuple[Ready, str, str]:
        """(message, signature, the hash for `activate`)."""
        plain = Ready(rental_id, "node.example", 2222, "renter", (HOST_KEY,), access_hash, 0, a_word())
        ready = replace(plain, **changes)
        signable = typed.message(self.facts, ready)
        return ready, self.provider.sign_message(signable), typed.struct_hash(signable)


def a_word() -> str:
    return "0x" + secrets.token_hex(32)


def a_key() -> Any:
    return secrets.token_hex(32)


def an_access_hash() -> str:
    return "0x" + hashlib.sha256(secrets.token_bytes(8)).hexdigest()


NO_FEE = {"feeBps": 0, "feeRecipient": ZERO_ADDRESS}


@contextlib.contextmanager
def lab(kind: str, folder: Path) -> Iterator[Lab]:
    process = chain.start(folder, free_port(), kind, TOOLS)
    try:
        money = deploy(process.url, folder)
        yield Lab(process.url, folder, EscrowFacts(money.chain_id, money.escrow, money.token),
                  wallet.load_key(Path(money.renter_key)), wallet.load_key(Path(money.provider_key)))
    finally:
        chain.stop(process)
