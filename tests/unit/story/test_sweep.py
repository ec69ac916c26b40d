"""The sweep on the simulated world: what it finds, what it leaves alone, and that nothing broken stands in its way."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import replace

import pytest

from orchestrator.domain.event import GENESIS, Event, Kind, owed
from orchestrator.domain.lease import Ending
from orchestrator.domain.names import Instant, RunId
from orchestrator.errors import CannotTell, Detached, OutcomeUnknown, SealtuneError, Transient, Unreachable, gravest
from orchestrator.house import House
from orchestrator.ports import Market
from orchestrator.rental import run
from orchestrator.sweep import Leftover, end_found, end_leaked, end_run, found_name, still_open, survey
from tests.fakes.laptop import FakePerson, house
from tests.fakes.world import FakeClock, FakeMarket, Killed, World
from tests.scenario.matrix import task

pytestmark = pytest.mark.noleak
RUN = RunId("run-1")


class Shelf:
    """Port Journals over one world; `broken` runs cannot be read."""

    def __init__(self, w: World, *broken: str, used: bool = False) -> None:
        self.w, self.broken, self.used = w, broken, used

    def runs(self) -> Sequence[RunId]: return [*map(RunId, self.broken), RUN]
    def in_use(self, run: RunId) -> bool: return self.used
    def last_contact(self, run: RunId) -> Instant: return Instant(self.w.contact)

    def read(self, run: RunId) -> Sequence[Event]:
        if run in self.broken:
            raise SealtuneError(f"{run} was changed")
        return self.w.events


def killed(kind: str = "escrow", at: int = 40) -> World:
    """A run that died while its job ran, and the world a little later."""
    w = World(kind)

    def crash(phase: str, n: int) -> None:
        if (phase, n) == ("after", at):
            raise Killed()

    with pytest.raises(Killed):
        run(house(w, crash), task())
    w.pass_time(300)
    return w


def surveyed(w: World, *broken: str, used: bool = False, contact: int = 120) -> list[Leftover]:
    return list(survey([lambda: FakeMarket(w)], Shelf(w, *broken, used=used), FakeClock(w), contact))  # type: ignore[arg-type]


@contextmanager
def open_house(w: World) -> Iterator[House]:
    yield house(w)


def test_a_dead_run_is_paused_until_its_contact_is_overdue_then_leaked() -> None:
    w = killed()
    assert [left.state for left in surveyed(w, contact=100_000)] == ["paused"]
    assert [left.state for left in surveyed(w)] == ["leaked"]
    assert [left.state for left in surveyed(w, used=True)] == ["in use"]


def test_an_unreadable_journal_hides_no_other() -> None:
    w = killed()
    assert [(left.run, left.state) for left in surveyed(w, "old")] == [("old", "unreadable"), (RUN, "leaked")]


def test_a_market_that_cannot_be_asked_fails_the_sweep_after_the_others_were_served() -> None:
    w = killed()

    def away() -> Market:
        raise Unreachable("away")

    leftovers = survey([away, lambda: FakeMarket(w)], Shelf(w), FakeClock(w), 120)  # type: ignore[arg-type]
    swept = end_leaked(leftovers, lambda run: open_house(w), lambda left: open_house(w), lambda left: False)
    assert [(s.run, type(s.problem)) for s in swept] == [(RUN, type(None)), ("markets", Unreachable)]
    assert owed(w.events) == ()


def test_a_lease_that_is_on_its_way_is_never_taken_for_unknown() -> None:
    w = killed(at=next(n for n in range(1, 60) if str(opened(n)) == "lease-1/open"))
    assert [left.state for left in surveyed(w, contact=100_000)] == ["paused"]


def opened(row: int) -> object:
    """The deed of the row after which a run is killed."""
    return killed(at=row).events[-1].deed


class TestAdoption:
    def found(self, w: World) -> Leftover:
        w.events, w.vault, w.head = [], {}, GENESIS
        class Empty(Shelf):
            def runs(self) -> Sequence[RunId]: return []
        left, = survey([lambda: FakeMarket(w)], Empty(w), FakeClock(w), 120)  # type: ignore[arg-type]
        return left

    def test_an_unknown_lease_is_ended_from_an_empty_laptop(self) -> None:
        w = killed()
        left = self.found(w)
        assert (left.state, left.found and found_name(left.found)) == ("unknown", left.run)
        assert end_found(left, lambda _: open_house(w)).problem is None
        assert w.rentals[0].closed_at and w.rentals[0].settled and owed(w.events) == ()

    @pytest.mark.parametrize("at", range(1, 9))
    def test_a_crash_at_any_row_of_an_adoption_is_mended_by_the_next_one(self, at: int) -> None:
        w = killed()
        left = self.found(w)

        def crash(phase: str, n: int) -> None:
            if (phase, n) == ("after", at):
                raise Killed()

        @contextmanager
        def dying(_: Leftover) -> Iterator[House]:
            yield house(w, crash)

        with suppress(Killed):
            end_found(left, dying)
        assert end_found(left, lambda _: open_house(w)).problem is None
        assert w.rentals[0].settled and owed(w.events) == ()


    def two(self) -> tuple[list[World], list[Leftover]]:
        worlds = [killed(), killed()]
        lefts = [self.found(w) for w in worlds]
        return worlds, [lefts[0], replace(lefts[1], run=RunId("found-other"))]

    @pytest.mark.parametrize("works", [True, False])
    def test_many_are_written_down_and_then_ended_together(self, works: bool) -> None:
        """One that cannot be ended so is ended like any other."""
        worlds, lefts = self.two()
        market, asked = FakeMarket(worlds[0]), list[int]()

        def end_many(endings: Sequence[Ending]) -> None:
            asked.append(len(endings))
            assert all(w.events[-1].deed.step == "end" and w.events[-1].kind is Kind.INTENDED for w in worlds)
            if not works:
                raise Unreachable("away")

        market.end_many = end_many  # type: ignore[method-assign]
        of = dict(zip([left.run for left in lefts], worlds, strict=True))
        first = [True]

        @contextmanager
        def opened_house(left: Leftover) -> Iterator[House]:
            made = house(of[left.run])
            yield replace(made, market=market) if first.pop() else made
            first.append(False)

        swept = end_leaked(iter(lefts), lambda run: open_house(worlds[0]), opened_house, lambda left: True)
        assert asked == [2] and [(s.run, s.problem) for s in swept] == [(left.run, None) for left in lefts]
        for w in worlds:
            assert w.rentals[0].settled and owed(w.events) == ()
            assert [e.kind for e in w.events if e.deed.step == "end"] == [Kind.INTENDED, Kind.DONE]

    @pytest.mark.parametrize("at", range(1, 9))
    def test_a_crash_before_they_are_ended_together_is_mended(self, at: int) -> None:
        worlds, lefts = self.two()
        of = dict(zip([left.run for left in lefts], worlds, strict=True))

        def crash(phase: str, n: int) -> None:
            if (phase, n) == ("after", at):
                raise Killed()

        with suppress(Killed):
            end_leaked(iter(lefts), lambda run: open_house(worlds[0]), lambda left: nullcontext(house(of[left.run], crash)),
                       lambda left: True)
        for left in lefts:
            assert end_found(left, lambda left: open_house(of[left.run])).problem is None
        assert all(w.rentals[0].settled and owed(w.events) == () for w in worlds)


def test_a_question_without_an_answer_is_never_followed_by_a_second_rent_call() -> None:
    """`open` timed out and the market does not say whether it happened: asked on, not rented again."""
    w = World("custodial", faults={"open answer lost": 1})

    class Mute(FakeMarket):
        def find(self, order: object) -> None:
            raise Transient("the list does not answer")

    mute = replace(house(w), market=Mute(w))
    with pytest.raises((CannotTell, OutcomeUnknown, SealtuneError)):
        run(mute, task())
    assert w.opens == 1
    assert any(e.kind is Kind.INTENDED and e.deed.step == "open" for e in w.events)
    assert "lease" in {o.what for o in owed(w.events)}


def test_the_gravest_exit_code_is_not_the_largest() -> None:
    assert gravest([11, 5, 3]) == 5
    assert gravest([]) == 0


def breaking_off(w: World, step: str) -> House:
    """A release that is interrupted when this step begins, by a person who does not want to wait."""
    def crash(phase: str, n: int) -> None:
        if w.events and w.events[-1].deed.step == step and w.events[-1].kind is Kind.INTENDED:
            raise KeyboardInterrupt

    return replace(house(w, crash), person=FakePerson("stop", patient=False))


@pytest.mark.parametrize(("step", "code", "says"), [
    ("wipe", 5, r"interrupted; run-1 may go on costing .* per hour; still open: .*lease of lease-1.*deposit of lease-1"),
    ("settle", 5, r"^interrupted; still open: deposit of lease-1$"),
    ("destroy", 130, r"^interrupted, nothing is rented any more$")])
def test_who_breaks_an_end_off_learns_what_is_left(step: str, code: int, says: str) -> None:
    w = killed()
    swept = end_run(RUN, lambda run: nullcontext(breaking_off(w, step)))
    assert swept.problem and swept.broken_off and swept.problem.exit_code == code
    assert re.search(says, str(swept.problem)) and f"sealtune end {RUN}" in str(swept.problem.hint)
    assert end_run(RUN, lambda run: open_house(w)).problem is None and owed(w.events) == ()


def test_a_sweep_that_is_broken_off_goes_to_no_other_run() -> None:
    w, left = killed(), surveyed(killed())
    asked: list[RunId] = []

    @contextmanager
    def asking(run: RunId) -> Iterator[House]:
        asked.append(run)
        yield breaking_off(w, "wipe")

    others = [*left, replace(left[0], run=RunId("run-2"))]
    swept = end_leaked(iter(others), asking, lambda _: open_house(w), lambda _: False)
    assert asked == [RUN] and [s.run for s in swept] == [RUN, "the rest"]
    assert swept[1].problem and swept[1].problem.exit_code == 5 and "sealtune end --leaked" in str(swept[1].problem.hint)


def test_nothing_is_said_to_be_open_when_only_keys_are_left() -> None:
    w = killed(at=next(n for n in range(1, 60) if str(opened(n)) == "lease-1/open") - 1)
    assert [o.what for o in owed(w.events)] == ["home key", "keys"]
    assert still_open(RUN, w.events, "interrupted") is None


def test_a_detached_run_whose_end_was_broken_off_is_leaked() -> None:
    """`end` was told to go on and then interrupted: nobody will come back for that work."""
    w, left = World("escrow"), [KeyboardInterrupt]

    def leave(phase: str, n: int) -> None:
        if left and w.events and str(w.events[-1].deed) == "lease-1/start" and w.events[-1].kind is Kind.DONE:
            raise left.pop()

    with pytest.raises(Detached, match=r"at most 5\.00 USDC"):
        run(house(w, leave, answer="detach"), task())
    assert [left.state for left in surveyed(w)] == ["detached"]
    end_run(RUN, lambda run: nullcontext(breaking_off(w, "wipe")))
    assert [left.state for left in surveyed(w)] == ["leaked"]
