"""A job that is left alone: its keeper knows, what fails on the way is given back, and a hold that did not take is asked
for again."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import steps
from orchestrator.domain.event import Kind, owed
from orchestrator.domain.lease import Hold, Lease, LeaseView
from orchestrator.domain.money import USDC, Money, Rate
from orchestrator.domain.names import Instant, LeaseId, LeaseKey, Reason
from orchestrator.domain.progress import Seen
from orchestrator.domain.training import Armed, Deadline, Job
from orchestrator.errors import Detached, NodeLost, Refused, StopRun, Transient
from orchestrator.rental import run
from tests.fakes.laptop import house
from tests.fakes.world import FakeMarket, FakeNode, Killed, World
from tests.scenario.matrix import task
from tests.unit.story.test_own_server import Nodes

pytestmark = pytest.mark.noleak


class Watched(FakeNode):
    """Ctrl-C as soon as the job is watched; what the keeper was last told."""

    told: Deadline | None = None

    def follow(self, job: Job, home: Path) -> Iterator[Seen]:
        raise KeyboardInterrupt

    def arm(self, deadline: Deadline) -> Armed:
        type(self).told = deadline
        return super().arm(deadline)


@pytest.mark.parametrize("kind", ["escrow", "ssh"])
def test_the_keeper_is_told_that_nobody_will_be_heard(kind: str) -> None:
    """It was armed for the first slice only, and ended the job that had been paid for until much later."""
    w = World(kind)
    with pytest.raises(Detached):
        run(replace(house(w, answer="detach"), nodes=Nodes(w, Watched)), task())
    away = next(e for e in w.events if e.deed.step == "detached").public["until"]
    assert Watched.told and Watched.told.until > away - 600
    assert Watched.told.silence_seconds >= away - w.now


def test_a_detach_that_fails_gives_everything_back() -> None:
    w = World("escrow")

    class Deaf(Watched):
        def arm(self, deadline: Deadline) -> Armed:
            if any(e.deed.step == "start" and e.kind is Kind.DONE for e in self.w.events):
                raise NodeLost("silent")
            return super().arm(deadline)

    with pytest.raises(NodeLost):
        run(replace(house(w, answer="detach"), nodes=Nodes(w, Deaf)), task())
    assert not [o for o in owed(w.events) if o.scope != "run"]


def test_a_run_killed_while_its_key_is_destroyed_rents_nothing_again() -> None:
    w = World("escrow")

    class Failing(FakeNode):
        def follow(self, job: Job, home: Path) -> Iterator[Seen]:
            raise StopRun(Reason.FAILED, "out of memory")

    def crash(phase: str, n: int) -> None:
        if w.events and str(w.events[-1].deed) == "run/forget" and w.events[-1].kind is Kind.INTENDED:
            raise Killed()

    with pytest.raises(Killed):
        run(replace(house(w, crash), nodes=Nodes(w, Failing)), task())
    with pytest.raises(Refused, match="given up"):
        run(house(w), task())
    assert len(w.rentals) == 1


def test_a_hold_that_did_not_take_is_no_result() -> None:
    """One short answer was written down as done, was never asked for again, and the lease lapsed."""
    lease = Lease("escrow", LeaseKey("1" * 64), LeaseId("1"), Rate(Money(450_000, USDC)), Instant(0))
    wanted = Hold(lease, Instant(7200), Money(900_000, USDC))

    class Answers(FakeMarket):
        def hold(self, hold: Hold) -> LeaseView:
            return LeaseView(Instant(0), None, until, None, Money(0, USDC), None)

    for until in (Instant(7200), None):
        assert steps.hold(replace(house(World("escrow")), market=Answers(World("escrow"))), wanted).funded_until == until
    until = Instant(3600)
    with pytest.raises(Transient, match="paid until"):
        steps.hold(replace(house(World("escrow")), market=Answers(World("escrow"))), wanted)
