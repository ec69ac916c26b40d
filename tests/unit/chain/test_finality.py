"""Included is not final: what a reorganisation takes back happens again, once, and what was undone is not called done."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.chain.bulk import BulkSender
from orchestrator.chain.escrow import ChainEscrow
from orchestrator.chain.fees import GWEI, Policy
from orchestrator.chain.rpc import Rpc
from orchestrator.errors import NothingMade, OutcomeUnknown
from orchestrator.journal.outbox import Outbox
from orchestrator.lab.deploy import send
from tests.fakes.labchain import NO_FEE, Lab, a_key, an_access_hash, lab
from tests.fakes.outbox import DyingOutbox, Killed

pytestmark = pytest.mark.money
DEPOSIT = 66_667
POLICY = Policy(0, GWEI, 2)              # anvil calls final what has two blocks on top


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab("anvil", tmp_path_factory.mktemp("anvil")) as found:
        yield found


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    found = Outbox(tmp_path / "state")
    yield found
    found.close()


class Deposit:
    def __init__(self, world: Lab, outbox: Any, wait_s: float = 5) -> None:
        self.world, self.outbox, self.wait_s = world, outbox, wait_s
        self.key, self.access = a_key(), an_access_hash()
        self.quote, self.before = world.quote(**NO_FEE), world.usdc(world.renter.address)
        self.id = self.escrow().rental_id(self.key)

    def escrow(self, outbox: Any = None) -> ChainEscrow:
        """Of a new process."""
        rpc, me, facts = Rpc(self.world.url), self.world.renter, self.world.facts
        sender = BulkSender(rpc, me, outbox or self.outbox, facts.chain_id, POLICY, self.wait_s)
        return ChainEscrow(rpc, me, outbox or self.outbox, facts, sender)

    def make(self, outbox: Any = None) -> Any:
        return self.escrow(outbox).create(self.key, *self.quote, 600, DEPOSIT, self.access)

    @property
    def paid(self) -> int:
        return self.before - self.world.usdc(self.world.renter.address)

    @property
    def open(self) -> set[str]:
        wallet = f"{self.world.facts.chain_id}:{self.world.renter.address}"
        return {key.partition(":")[0] for key, _ in self.outbox.pending(wallet)}

    @property
    def attempts(self) -> int:
        return len(self.outbox.attempts(f"{self.world.facts.chain_id}:{self.world.renter.address}", f"create:{self.id}"))


def test_an_intent_stays_open_until_its_block_is_final(world: Lab, outbox: Outbox) -> None:
    deposit = Deposit(world, outbox)
    assert deposit.make().status == "funded" and "create" in deposit.open
    other = Deposit(world, outbox)
    assert other.make().status == "funded"           # which is nothing to wait for
    world.rpc("anvil_mine", hex(3))
    assert deposit.make().status == "funded" and deposit.open == set()
    assert other.before - deposit.before == -DEPOSIT and other.paid == DEPOSIT


def test_whoever_looks_brings_back_what_a_reorganisation_took(world: Lab, outbox: Outbox) -> None:
    """It says neither "none" about a deposit that may come back, nor is another one made."""
    deposit = Deposit(world, outbox)
    deposit.make()
    world.rpc("anvil_reorg", 1, [])
    assert world.escrow_read("statusOf", deposit.id) == 0
    assert deposit.escrow().view(deposit.id).status == "funded"
    world.rpc("anvil_reorg", 1, [])
    assert deposit.make().status == "funded"
    assert (deposit.paid, deposit.attempts) == (DEPOSIT, 1)


def test_a_reorganisation_below_several_intents(world: Lab, outbox: Outbox) -> None:
    first, second = Deposit(world, outbox), Deposit(world, outbox)
    first.make()
    second.make()
    world.rpc("anvil_reorg", 2, [])                  # approve and create of the second: the first is two deep
    third = Deposit(world, outbox)
    third.make()                                     # whoever signs next brings them back first
    assert {d.escrow().view(d.id).status for d in (first, second, third)} == {"funded"}
    assert first.paid == 3 * DEPOSIT


def test_reverted_counts_as_not_done_once_that_is_final(world: Lab, outbox: Outbox) -> None:
    deposit = Deposit(world, outbox, wait_s=0.3)
    deposit.escrow()._allow("0x02", DEPOSIT)
    world.rpc("evm_setAutomine", False)
    with pytest.raises(OutcomeUnknown, match="not in a block yet"):
        deposit.make()
    world.later(601)                                 # mined after the quote ran out
    world.rpc("evm_mine")
    world.rpc("evm_setAutomine", True)
    for ask in (deposit.make, lambda: deposit.escrow().view(deposit.id)):
        with pytest.raises(OutcomeUnknown, match="included and reverted, which is not final yet"):
            ask()
    Deposit(world, outbox).make()                    # in nobody else's way
    world.rpc("anvil_mine", hex(3))
    with pytest.raises(NothingMade, match="ran out"):
        deposit.make()
    assert deposit.escrow().view(deposit.id).status == "none"


def test_a_nonce_that_was_taken_is_given_up_once_that_is_final(world: Lab, outbox: Outbox) -> None:
    deposit = Deposit(world, outbox, wait_s=0.3)
    with pytest.raises(Killed):
        deposit.make(DyingOutbox(outbox, 1))
    send(Rpc(world.url), world.renter, world.provider.address, b"")
    with pytest.raises(OutcomeUnknown, match=r"nonce \d+ was used by another transaction, which is not final yet"):
        deposit.make()
    world.rpc("anvil_mine", hex(3))
    assert deposit.make().status == "funded"
    assert (deposit.paid, deposit.attempts) == (DEPOSIT, 2)
