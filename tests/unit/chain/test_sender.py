"""Crashes, lost answers, stuck and stolen nonces: each intent happens once, or the caller knows that it may have."""
from __future__ import annotations

import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.chain.rpc import Rpc
from orchestrator.errors import NoFunds, NothingMade, OutcomeUnknown, Transient
from orchestrator.journal.outbox import Outbox
from orchestrator.lab import chain
from orchestrator.lab.deploy import send
from orchestrator.second_row import Attempt
from tests.fakes.labchain import NO_FEE, Lab, a_key, an_access_hash, lab
from tests.fakes.outbox import DyingOutbox, Killed, MemoryOutbox
from tests.fakes.wires import Wire, http_server

pytestmark = pytest.mark.money
DEPOSIT = 66_667                         # ceil(400001 * 600 / 3600)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab("anvil", tmp_path_factory.mktemp("anvil")) as found:
        yield found


@pytest.fixture(autouse=True)
def mining(world: Lab) -> Iterator[None]:
    yield
    world.rpc("evm_setAutomine", True)
    world.rpc("anvil_dropAllTransactions")
    world.rpc("evm_mine")


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    """The durable one."""
    found = Outbox(tmp_path / "state")
    yield found
    found.close()


class Intent:
    """One deposit that shall happen once."""

    def __init__(self, world: Lab, **changes: Any) -> None:
        self.world, self.key, self.access = world, a_key(), an_access_hash()
        self.quote, self.signature = world.quote(**NO_FEE, **changes)
        self.before = world.usdc(world.renter.address)

    def make(self, escrow: Any) -> Any:
        return escrow.create(self.key, self.quote, self.signature, 600, DEPOSIT, self.access)

    @property
    def paid(self) -> int:
        return self.before - self.world.usdc(self.world.renter.address)


def hashes(world: Lab, outbox: Any, rental_id: str) -> list[str]:
    wallet = f"{world.facts.chain_id}:{world.renter.address}"
    return [a.hash for a in outbox.attempts(wallet, f"create:{rental_id}")]


@pytest.mark.parametrize("lives", [0, 1])
def test_killed_between_disk_and_network(world: Lab, outbox: Outbox, lives: int) -> None:
    """Before approve went out, and before create did. The bytes on disk are those that are mined."""
    intent = Intent(world)
    with pytest.raises(Killed):
        intent.make(world.escrow(DyingOutbox(outbox, lives)))
    assert intent.paid == 0
    escrow = world.escrow(outbox)
    kept = hashes(world, outbox, escrow.rental_id(intent.key))
    rental = intent.make(escrow)
    assert (rental.status, intent.paid) == ("funded", DEPOSIT)
    assert intent.make(world.escrow(outbox)) == rental and intent.paid == DEPOSIT
    after = hashes(world, outbox, rental.id)
    assert len(after) == 1 and (kept == after or lives == 0)


def test_whoever_asks_after_a_crash_gets_a_proof(world: Lab, outbox: Outbox) -> None:
    """`view` brings a signed deposit to its end before it says anything, so a "none" never turns into a deposit."""
    intent = Intent(world)
    with pytest.raises(Killed):
        intent.make(world.escrow(DyingOutbox(outbox, 1)))
    escrow = world.escrow(outbox)
    assert escrow.view(escrow.rental_id(intent.key)).status == "funded"
    assert intent.paid == DEPOSIT


def test_a_crash_of_one_run_is_finished_by_the_next(world: Lab, outbox: Outbox) -> None:
    first, second = Intent(world), Intent(world)
    with pytest.raises(Killed):
        first.make(world.escrow(DyingOutbox(outbox, 1)))
    second.make(world.escrow(outbox))
    assert first.paid == 2 * DEPOSIT
    first.make(world.escrow(outbox))
    assert first.paid == 2 * DEPOSIT


def test_killed_while_extending_and_closing(world: Lab, outbox: Outbox) -> None:
    intent = Intent(world)
    rental = intent.make(world.escrow(outbox))
    world.act(world.provider, "activate", rental.id, "0x" + "01" * 32)
    for _ in ("approve", "extend"):
        with pytest.raises(Killed):
            world.escrow(DyingOutbox(outbox)).extend_to(rental.id, 1000, 111_112)
    extended = world.escrow(outbox).extend_to(rental.id, 1000, 111_112)
    assert (extended.seconds, intent.paid) == (1000, 111_112)
    with pytest.raises(Killed):
        world.escrow(DyingOutbox(outbox)).close(rental.id, False, "", "")
    closed = world.escrow(outbox).close(rental.id, False, "", "")
    assert closed.status == "closed" and intent.paid == closed.paid


def test_a_lost_answer_is_found_by_hash_and_not_sent_again(world: Lab, outbox: Outbox) -> None:
    intent, wire = Intent(world), Wire(world.url)
    wire.lose_sends = True
    with http_server(wire) as url:
        assert intent.make(world.escrow(outbox, url)).status == "funded"
    assert intent.paid == DEPOSIT
    assert len(wire.sent) == len(set(wire.sent)) == 2      # approve and create, each once


def test_a_network_that_dies_with_the_answer(world: Lab, outbox: Outbox) -> None:
    intent, wire = Intent(world), Wire(world.url)
    with http_server(wire) as url:
        escrow = world.escrow(outbox, url, wait_s=0.3)
        wire.dead_after_send = True
        with pytest.raises(OutcomeUnknown, match="not in a block yet: no clear answer"):
            intent.make(escrow)                            # approve went out
        with pytest.raises(OutcomeUnknown, match="does not answer"):
            intent.make(escrow)
        with pytest.raises(Transient, match="does not answer"):
            Intent(world).make(world.escrow(outbox, url))  # nothing of this one was signed
        wire.alive = True
        with pytest.raises(OutcomeUnknown):
            intent.make(escrow)                            # create went out
        assert intent.paid == DEPOSIT
        wire.alive, wire.dead_after_send = True, False
        assert intent.make(escrow).status == "funded"
    assert intent.paid == DEPOSIT and len(set(wire.sent)) == 2


def test_a_bid_that_became_too_low_is_raised_on_the_same_nonce(world: Lab, outbox: Outbox) -> None:
    intent = Intent(world)
    escrow = world.escrow(outbox, wait_s=0.3)
    escrow._allow("0x00", DEPOSIT)
    world.rpc("evm_setAutomine", False)
    with pytest.raises(OutcomeUnknown, match="signed but is not in a block yet"):
        intent.make(escrow)
    world.rpc("anvil_setNextBlockBaseFeePerGas", hex(400 * 10**9))
    world.rpc("evm_mine")
    with pytest.raises(OutcomeUnknown):
        intent.make(escrow)
    world.rpc("evm_mine")
    rental = intent.make(escrow)
    assert (rental.status, intent.paid) == ("funded", DEPOSIT)
    wallet = f"{world.facts.chain_id}:{world.renter.address}"
    attempts = outbox.attempts(wallet, f"create:{rental.id}")
    assert len(attempts) == 2 and attempts[0].nonce == attempts[1].nonce and not outbox.pending(wallet)


def test_an_interrupt_between_signing_and_keeping_takes_no_nonce(world: Lab, outbox: Outbox) -> None:
    """The nonce was counted before it was kept: the next one was signed above a gap that nobody would fill."""
    class Interrupted(MemoryOutbox):
        def keep(self, wallet: str, key: str, attempt: Attempt) -> None:
            if len(self.kept) == 1:
                self.kept[wallet, "interrupted"] = []
                raise KeyboardInterrupt
            super().keep(wallet, key, attempt)

    intent = Intent(world)
    escrow = world.escrow(Interrupted(), wait_s=2)
    with pytest.raises(KeyboardInterrupt):
        intent.make(escrow)
    assert intent.make(escrow).status == "funded" and intent.paid == DEPOSIT


def test_a_bid_that_the_wallet_cannot_pay_replaces_nothing(world: Lab, outbox: Outbox) -> None:
    """One absurd base fee, and the only bytes that were sent from then on were ones that nobody takes."""
    intent = Intent(world)
    escrow = world.escrow(outbox, wait_s=0.3)
    escrow._allow("0x00", DEPOSIT)
    world.rpc("evm_setAutomine", False)
    with pytest.raises(OutcomeUnknown):
        intent.make(escrow)
    owned = world.rpc("eth_getBalance", world.renter.address, "latest")
    world.rpc("anvil_setBalance", world.renter.address, hex(2 * 10**15))
    try:
        world.rpc("anvil_setNextBlockBaseFeePerGas", hex(400 * 10**9))
        world.rpc("evm_mine")
        with pytest.raises((OutcomeUnknown, NoFunds, Transient)):
            intent.make(escrow)
        wallet = f"{world.facts.chain_id}:{world.renter.address}"
        assert len([a for _, a in outbox.pending(wallet)]) == 1
    finally:
        world.rpc("anvil_setBalance", world.renter.address, owned)


def test_dropped_by_the_node_and_sent_again(world: Lab, outbox: Outbox) -> None:
    intent, escrow = Intent(world), world.escrow(outbox, wait_s=0.3)
    escrow._allow("0x01", DEPOSIT)
    world.rpc("evm_setAutomine", False)
    with pytest.raises(OutcomeUnknown):
        intent.make(escrow)
    world.rpc("anvil_dropAllTransactions")
    world.rpc("evm_setAutomine", True)
    rental = intent.make(escrow)
    assert intent.paid == DEPOSIT and len(hashes(world, outbox, rental.id)) == 1


def test_a_nonce_that_somebody_else_used(world: Lab, outbox: Outbox) -> None:
    """The same key in another wallet. Only then is the intent signed anew, and still happens once."""
    intent = Intent(world)
    with pytest.raises(Killed):
        intent.make(world.escrow(DyingOutbox(outbox, 1)))
    send(Rpc(world.url), world.renter, world.provider.address, b"")
    rental = intent.make(world.escrow(outbox))
    assert intent.paid == DEPOSIT and len(hashes(world, outbox, rental.id)) == 2


def test_mined_and_then_forgotten_by_the_chain(world: Lab, outbox: Outbox) -> None:
    """A reorganisation that puts nothing back into the pool."""
    intent, escrow = Intent(world), world.escrow(outbox)
    rental = intent.make(escrow)
    world.rpc("anvil_reorg", 1, [])
    assert world.escrow_read("statusOf", rental.id) == 0
    assert world.escrow(outbox).view(rental.id).status == "funded"
    again = intent.make(world.escrow(outbox))
    assert (again.id, again.status, intent.paid) == (rental.id, "funded", DEPOSIT)
    assert len(hashes(world, outbox, rental.id)) == 1


def test_mined_and_reverted_costs_gas_and_may_be_tried_again(world: Lab, outbox: Outbox) -> None:
    intent, escrow = Intent(world), world.escrow(outbox, wait_s=0.3)
    escrow._allow("0x02", DEPOSIT)
    world.rpc("evm_setAutomine", False)
    with pytest.raises(OutcomeUnknown):
        intent.make(escrow)
    world.later(601)                     # mined after the quote ran out
    world.rpc("evm_mine")
    world.rpc("evm_setAutomine", True)
    with pytest.raises(NothingMade, match="ran out"):
        intent.make(escrow)
    id = escrow.rental_id(intent.key)
    assert intent.paid == 0 and escrow.view(id).status == "none" and escrow.spent(id).units > 0
    intent.quote, intent.signature = world.quote(**NO_FEE)
    assert intent.make(escrow).status == "funded" and intent.paid == DEPOSIT


def test_two_runs_with_one_wallet(world: Lab, outbox: Outbox) -> None:
    """Each approves exactly its deposit; neither takes the other's."""
    intents = [Intent(world, pricePerHour=price) for price in (400_001, 300_000, 200_000)]
    found: list[Any] = []
    threads = [threading.Thread(target=lambda i=i: found.append(i.make(world.escrow(outbox)))) for i in intents]
    for thread in threads: thread.start()
    for thread in threads: thread.join()
    assert sorted(r.deposit for r in found) == [33_334, 50_000, DEPOSIT]
    assert intents[0].paid == 33_334 + 50_000 + DEPOSIT


def test_a_wallet_without_money(world: Lab, outbox: Outbox) -> None:
    poor = world.provider
    quote, signature = world.quote(renter=poor.address)
    with pytest.raises(NoFunds, match=r"has 0\.0\d+ USDC, 0\.066667 USDC are needed|has 0\.000000 USDC"):
        world.escrow(outbox, who=poor).create(a_key(), quote, signature, 600, DEPOSIT, an_access_hash())
    owned = int(chain.call(world.url, "eth_getBalance", world.renter.address, "latest"), 16)
    world.rpc("anvil_setBalance", world.renter.address, hex(10**12))
    try:
        with pytest.raises(NoFunds, match="POL"):
            Intent(world).make(world.escrow(outbox))
    finally:
        world.rpc("anvil_setBalance", world.renter.address, hex(owned))
    assert not outbox.pending(f"{world.facts.chain_id}:{poor.address}")
