"""The story on the person's own server: there is only one, so one failure is the answer; nothing is owed in vain."""
from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.event import Kind, Owed, owed
from orchestrator.domain.lease import Access, Offer, Wish
from orchestrator.domain.names import LeaseKey, Reason
from orchestrator.domain.progress import Finished, Seen
from orchestrator.domain.spool import Installed, Payload
from orchestrator.domain.training import Agreement, Armed, Deadline, Job
from orchestrator.errors import Detached, LeaveNode, Refused, SealtuneError, StopRun
from orchestrator.rental import run
from tests.fakes.laptop import house
from tests.fakes.world import FakeMarket, FakeNode, FakeNodes, World
from tests.scenario.matrix import task

pytestmark = pytest.mark.noleak


class Mine(FakeMarket):
    """As the own server's driver: the offer has an address, and says what was seen."""

    def offers(self, wish: Wish) -> list[Offer]:
        return [replace(offer, where="gpu.example.net", shown="no GPU") for offer in super().offers(wish)]


class Nodes(FakeNodes):
    """Nodes of one kind."""

    def __init__(self, w: World, kind: type[FakeNode]) -> None:
        super().__init__(w)
        self._kind = kind

    def at(self, access: Access, ssh_key: bytes, lease: LeaseKey, patience: int) -> FakeNode:
        return self._kind(self.w, lease, patience)


class NoRoom(FakeNode):
    def install(self, payload: Payload) -> Installed:
        raise LeaveNode(Reason.UNSUITABLE, detail="the disk is full")


class Refusing(FakeNode):
    def install(self, payload: Payload) -> Installed:
        raise LeaveNode(Reason.REFUSED, detail="internal: Broken install.py:1")


class CutOff(FakeNode):
    """Ctrl-C while the server is being dialled: no word of ours has reached it."""

    def arm(self, deadline: Deadline) -> Armed:
        cut = KeyboardInterrupt()
        cut.untouched = True  # type: ignore[attr-defined]
        raise cut


@pytest.mark.parametrize(("kind", "why"), [(NoRoom, "the disk is full"), (Refusing, "node refused: internal")])
def test_what_it_cannot_do_is_not_tried_again(kind: type[FakeNode], why: str) -> None:
    w = World("ssh")
    with pytest.raises(StopRun, match=f"the server gpu.example.net was tried and left: .*{why}") as left:
        run(replace(house(w), market=Mine(w), nodes=Nodes(w, kind)), task())
    assert len(w.rentals) == 1
    assert "offer" not in str(left.value)
    assert [o for o in owed(w.events) if o.scope != "run"] == []


def test_a_server_that_is_lost_in_training_is_gone_on_with() -> None:
    """It was cut off for an hour: the next attempt goes on from the checkpoint."""
    w = World("ssh")

    class Away(FakeNode):
        def follow(self, job: Job, home: Path) -> Iterator[Seen]:
            for seen in super().follow(job, home):
                yield seen
                if len(w.rentals) == 1 and self.n.stopped_at is None and self._done() > 2000:
                    self.n.stopped_at = w.now
                    yield Finished("lost", None)

    run(replace(house(w), market=Mine(w), nodes=Nodes(w, Away)), task())
    assert len(w.rentals) == 2
    assert w.rentals[1].node.base_done == 1800


def test_who_is_not_let_in_has_begun_nothing() -> None:
    w = World("ssh")

    class Shut(FakeMarket):
        def offers(self, wish: Wish) -> list[Offer]:
            raise Refused("gpu.example.net does not let me in")

    with pytest.raises(Refused, match="does not let me in"):
        run(replace(house(w), market=Shut(w)), task())
    assert w.rentals == []
    assert not [e for e in w.events if e.deed.scope != "run"]


def test_an_interrupt_before_the_first_word_leaves_nothing_owed() -> None:
    w = World("ssh")
    with pytest.raises(SealtuneError):
        run(replace(house(w), market=Mine(w), nodes=Nodes(w, CutOff)), task())
    arm = [e.kind for e in w.events if e.deed.step == "arm"]
    assert arm == [Kind.INTENDED, Kind.FAILED]
    assert owed(w.events) == ()


def test_the_address_stays_out_of_the_exported_rows() -> None:
    w = World("ssh")
    run(replace(house(w), market=Mine(w)), task())
    assert not [e for e in w.events if b"gpu.example.net" in e.line()]


def test_left_alone_it_costs_nothing() -> None:
    w = World("ssh")

    class Watched(FakeNode):
        def follow(self, job: Job, home: Path) -> Iterator[Seen]:
            raise KeyboardInterrupt

    with pytest.raises(Detached, match=r"^the node goes on until .* UTC, at no cost$"):
        run(replace(house(w), market=Mine(w), nodes=Nodes(w, Watched), person=Leaving()), task())


class Leaving:
    """Confirms, and detaches."""

    def confirm(self, agreement: Agreement) -> bool:
        return True

    def interrupted(self, owed: Iterable[Owed], giving_back: bool) -> str:
        return "detach"
