"""A process that carries one intent out and may be killed at any time. What it runs is the product's own code."""
from __future__ import annotations

import sys
from dataclasses import dataclass
from pathlib import Path

import eth_account.typed_transactions.typed_transaction  # what is imported late, before the fork
import requests.adapters
import web3.middleware
import web3.providers.rpc.utils

from orchestrator.chain import contracts
from orchestrator.chain.bulk import BulkSender
from orchestrator.chain.escrow import ChainEscrow
from orchestrator.chain.fees import GWEI, Policy
from orchestrator.chain.rpc import Rpc
from orchestrator.chain.wallet import Wallet
from orchestrator.domain.escrow import EscrowFacts, Quote
from orchestrator.errors import OutcomeUnknown, Transient
from orchestrator.journal.outbox import Outbox
from orchestrator.lab.deploy import send

POLICY = Policy(0, GWEI, 2)              # anvil calls final what has two blocks on top
WAIT_S = 2.5
AGAIN = 3                                # exit code: it may have happened, the next one will know
_BEFORE_THE_FORK = (eth_account, requests, web3, contracts.load("RentalEscrow"), contracts.usdc(),
                    Wallet(b"\x01" * 32).sign_message)


@dataclass(frozen=True)
class Payment:
    """Nothing but the sender keeps this from happening twice: the token moves what it is told to."""

    key: str
    to: str
    amount: int


@dataclass(frozen=True)
class Deposit:
    """A rental paid for: approve and create."""

    key: str
    quote: Quote
    signature: str
    access: str
    amount: int


@dataclass(frozen=True)
class Payer:
    """Whose money it is, where its state lies, and which node it speaks to."""

    url: str
    state: Path
    key: str
    facts: EscrowFacts

    def sender(self) -> tuple[Rpc, Wallet, Outbox, BulkSender]:
        rpc, wallet, outbox = Rpc(self.url, self.facts.chain_id), Wallet(bytes.fromhex(self.key)), Outbox(self.state)
        return rpc, wallet, outbox, BulkSender(rpc, wallet, outbox, self.facts.chain_id, POLICY, WAIT_S)


def carry_out(payer: Payer, intent: Payment | Deposit) -> None:
    """Exit code 0: it is in a block. AGAIN: nobody knows."""
    try:
        if isinstance(intent, Payment):
            _pay(payer, intent)
        else:
            _rent(payer, intent)
    except (OutcomeUnknown, Transient) as doubt:
        print(f"{type(doubt).__name__}: {doubt}", file=sys.stderr)
        sys.exit(AGAIN)


def carry_out_naively(payer: Payer, intent: Payment) -> None:
    """As a client does that sends first and writes down afterwards: to show that the campaign sees what that costs."""
    rpc, wallet, _, _ = payer.sender()
    done = payer.state / intent.key
    if not done.exists():
        data = rpc.contract(payer.facts.token, contracts.usdc().token_abi).encode("transfer", intent.to, intent.amount)
        send(rpc, wallet, payer.facts.token, data)
        done.touch()


def settle(payer: Payer) -> None:
    """What any next command does first: bring what is open to its end."""
    _, _, _, sender = payer.sender()
    with sender.turn("-"):
        pass


def _pay(payer: Payer, intent: Payment) -> None:
    rpc, _, _, sender = payer.sender()
    data = rpc.contract(payer.facts.token, contracts.usdc().token_abi).encode("transfer", intent.to, intent.amount)
    with sender.turn(intent.key):
        sender.send(intent.key, payer.facts.token, data)


def _rent(payer: Payer, intent: Deposit) -> None:
    rpc, wallet, outbox, sender = payer.sender()
    escrow = ChainEscrow(rpc, wallet, outbox, payer.facts, sender)
    made = escrow.create(intent.key, intent.quote, intent.signature, 600, intent.amount, intent.access)  # type: ignore[arg-type]
    assert made.status == "funded"
