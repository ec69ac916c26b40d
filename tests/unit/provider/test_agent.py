"""The provider's story, turn by turn: crashes, failures, and renters who ask for what is not theirs."""
from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.chain.wallet import Wallet
from orchestrator.domain.names import LeaseKey
from orchestrator.errors import Transient
from orchestrator.marketplace.open_market.wire import QuoteOrder, access_hash
from orchestrator.provider.access import Door
from orchestrator.provider.agent import Agent, Problem
from orchestrator.provider.config import ProviderConfig
from orchestrator.provider.store import Store
from tests.fakes.clock import StoppedClock
from tests.fakes.escrow import Contract, FakeEscrow, FakeProviderChain, wallet
from tests.fakes.open_market import SSH_KEY, provider_config

pytestmark = pytest.mark.money


@dataclass
class Yard:
    """An agent without HTTP and without a watch: tests take its turns."""

    config: ProviderConfig
    clock: StoppedClock
    contract: Contract
    chain: FakeProviderChain
    renter: Wallet
    agent: Agent
    lock_outs: list[str]

    def restart(self) -> Agent:
        """The agent of the next process."""
        self.agent = Agent(self.config, self.chain, Store(Path(self.config.state_folder)),
                           Door(Path(self.config.authorized_keys)), self._lock_out)
        return self.agent

    def _lock_out(self) -> None:
        if self.lock_outs and self.lock_outs[-1] == "fails":
            self.lock_outs.append("failed")
            raise Transient("the sessions would not die")
        self.lock_outs.append("locked out")

    def rented(self, who: Wallet | None = None, name: str = "1", seconds: int = 3600) -> str:
        """A deposit, not yet hinted; the rental's id."""
        who = who or self.renter
        self.contract.mint(who.address, 10_000_000)
        quoted = self.agent.quote(QuoteOrder(offer_id="lab-1", renter=who.address, seconds=seconds,
                                             access_hash=access_hash(SSH_KEY)))
        return FakeEscrow(self.contract, who).create(
            LeaseKey(name.rjust(64, "0")), quoted.quote.quote(), quoted.signature, seconds, 10_000_000,
            access_hash(SSH_KEY)).id

    def hinted(self, who: Wallet | None = None) -> str:
        rental = self.rented(who)
        self.agent.hint((who or self.renter).address, rental, SSH_KEY)
        return rental

    def admitted(self) -> str | None:
        return Door(Path(self.config.authorized_keys)).admitted()

    def state(self, rental: str) -> str:
        return self.agent.rental(self.renter.address, rental).state


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    clock = StoppedClock()
    contract = Contract(clock)
    config = provider_config(tmp_path)
    chain = FakeProviderChain(contract, wallet())
    made = Yard(config, clock, contract, chain, wallet(), None, [])  # type: ignore[arg-type]
    made.restart()
    yield made


def test_in_and_out(yard: Yard) -> None:
    rental = yard.hinted()
    assert yard.state(rental) == "waiting" and yard.admitted() is None
    yard.agent.turn()
    assert yard.state(rental) == "ready" and yard.admitted() == SSH_KEY
    assert yard.contract.view(rental).status == "active"
    yard.clock.sleep(3599)
    yard.agent.turn()
    assert yard.admitted() == SSH_KEY and not yard.lock_outs
    yard.clock.sleep(1)
    yard.agent.turn()
    assert yard.state(rental) == "ended" and yard.admitted() is None and yard.lock_outs == ["locked out"]
    assert yard.contract.view(rental).outcome == "expired"
    yard.agent.turn()
    assert yard.lock_outs == ["locked out"] and yard.agent.offers()


def test_the_door_opens_before_the_clock_starts(yard: Yard) -> None:
    rental = yard.hinted()
    yard.chain.faults["down"] = 3
    yard.agent.turn()
    yard.agent.turn()
    assert yard.contract.view(rental).status == "funded"
    yard.agent.turn()
    yard.agent.turn()
    assert yard.contract.view(rental).status == "active" and yard.state(rental) == "ready"


def test_a_lost_answer_to_the_activation(yard: Yard) -> None:
    """Between two turns the process dies; what is served afterwards is what the chain was told."""
    rental = yard.hinted()
    yard.chain.faults["activate lost"] = 1
    yard.agent.turn()
    assert yard.contract.view(rental).status == "active" and yard.state(rental) == "waiting"
    yard.restart().turn()
    answer = yard.agent.rental(yard.renter.address, rental)
    assert answer.state == "ready" and answer.ready is not None
    assert yard.chain.ready_hash(answer.ready.ready()) == yard.contract.view(rental).ready_hash


def test_a_renter_who_left_meanwhile_is_locked_out_by_the_next_process(yard: Yard) -> None:
    rental = yard.hinted()
    yard.agent.turn()
    yard.contract.close(yard.renter.address, rental, "end")
    yard.restart().turn()
    assert yard.admitted() is None and yard.lock_outs == ["locked out"] and yard.agent.offers()


def test_a_key_that_nobody_remembers_is_removed(yard: Yard) -> None:
    Door(Path(yard.config.authorized_keys)).admit(SSH_KEY)
    yard.restart().turn()
    assert yard.admitted() is None


def test_a_lock_out_that_fails_is_tried_until_it_works(yard: Yard) -> None:
    rental = yard.hinted()
    yard.agent.turn()
    yard.contract.close(yard.renter.address, rental, "end")
    yard.lock_outs.append("fails")
    yard.agent.turn()
    assert yard.admitted() is None and not yard.agent.offers()     # nobody new while the old one may be in
    yard.agent.turn()
    assert yard.lock_outs[-1] == "locked out" and yard.agent.offers()


def test_cancelled_before_it_began(yard: Yard) -> None:
    rental = yard.hinted()
    yard.contract.close(yard.renter.address, rental, "cancel")
    yard.agent.turn()
    assert yard.admitted() is None and yard.state(rental) == "ended"


def test_an_extension_keeps_the_renter_in(yard: Yard) -> None:
    rental = yard.hinted()
    yard.agent.turn()
    yard.contract.extend_to(yard.renter.address, rental, 7200, 10_000_000)
    yard.clock.sleep(3601)
    yard.agent.turn()
    assert yard.admitted() == SSH_KEY and yard.state(rental) == "ready"


def test_hints_are_believed_from_the_chain_only(yard: Yard) -> None:
    rental = yard.rented()
    stranger = wallet()
    for asker, id, key, code in ((stranger.address, rental, SSH_KEY, "not-yours"),
                                 (yard.renter.address, "0x" + "12" * 32, SSH_KEY, "unknown-rental"),
                                 (yard.renter.address, rental, SSH_KEY[:-1] + "C", "wrong-key")):
        with pytest.raises(Problem) as no:
            yard.agent.hint(asker, id, key)
        assert no.value.code == code
    with pytest.raises(Problem, match="which ssh key"):
        yard.agent.rental(yard.renter.address, rental)
    yard.agent.turn()
    assert yard.admitted() is None


def test_saying_it_again_changes_nothing(yard: Yard) -> None:
    rental = yard.hinted()
    yard.agent.turn()
    before = yard.agent.rental(yard.renter.address, rental)
    assert yard.agent.hint(yard.renter.address, rental, SSH_KEY) == before
    yard.agent.turn()
    assert yard.agent.rental(yard.renter.address, rental) == before and before.state == "ready"


def test_one_renter_at_a_time(yard: Yard) -> None:
    second = wallet()
    late = yard.rented(second, "2")      # quoted and paid before the first one told us
    with pytest.raises(Problem) as no:
        yard.rented()
    assert (no.value.status, no.value.code) == (409, "busy")
    yard.agent.hint(second.address, late, SSH_KEY)
    yard.agent.turn()
    assert yard.agent.offers() == []


def test_two_deposits_in_the_same_moment_let_one_in(yard: Yard) -> None:
    second = wallet()
    yard.contract.mint(second.address, 10_000_000)
    order = QuoteOrder(offer_id="lab-1", renter=second.address, seconds=3600, access_hash=access_hash(SSH_KEY))
    quoted = yard.agent.quote(order)
    first = yard.hinted()
    other = FakeEscrow(yard.contract, second).create(LeaseKey("2" * 64), quoted.quote.quote(), quoted.signature, 3600,
                                                     10_000_000, access_hash(SSH_KEY)).id
    with pytest.raises(Problem) as no:
        yard.agent.hint(second.address, other, SSH_KEY)
    assert no.value.code == "busy"
    yard.agent.turn()
    assert yard.state(first) == "ready" and yard.contract.view(other).status == "funded"


@pytest.mark.parametrize(("order", "code"), [({"offer_id": "x"}, "unknown-offer"), ({"seconds": 59}, "bad-seconds"),
                                             ({"seconds": 36_001}, "bad-seconds")])
def test_quotes_that_are_not_given(yard: Yard, order: dict[str, object], code: str) -> None:
    asked = {"offer_id": "lab-1", "renter": yard.renter.address, "seconds": 60, "access_hash": access_hash(SSH_KEY),
             **order}
    with pytest.raises(Problem) as no:
        yard.agent.quote(QuoteOrder.model_validate(asked))
    assert no.value.code == code


def test_what_the_contract_owes_is_fetched_from_a_sum_on(tmp_path: Path) -> None:
    clock = StoppedClock()
    contract = Contract(clock)
    chain = FakeProviderChain(contract, wallet())
    config = provider_config(tmp_path, withdraw_at="0.40 USDC", fee_bps=0)
    yard = Yard(config, clock, contract, chain, wallet(), None, [])  # type: ignore[arg-type]
    yard.restart()
    yard.hinted()
    yard.agent.turn()
    clock.sleep(3600)
    yard.agent.turn()
    assert contract.balances[chain.account.lower()] == 450_000 and chain.credit() == 0


def test_a_state_file_that_cannot_be_read_stops_the_provider(yard: Yard) -> None:
    yard.hinted()
    file = Path(yard.config.state_folder) / "provider.json"
    assert file.stat().st_mode & 0o777 == 0o600
    tree = json.loads(file.read_text())
    assert tree["guests"][0]["phase"] == "waiting"
    file.write_text(file.read_text()[:-20])
    with pytest.raises(Exception, match="cannot be read"):
        yard.restart()
