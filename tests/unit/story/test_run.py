"""The story on the simulated world, fault by fault: each was met once."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from orchestrator import steps
from orchestrator.domain.event import Kind, owed
from orchestrator.domain.lease import Offer, Order, Terms
from orchestrator.domain.money import USDC, Money
from orchestrator.domain.names import Reason
from orchestrator.domain.training import Agreement
from orchestrator.errors import Interrupted, OfferGone, Refused, SealtuneError
from orchestrator.ledger import result_of
from orchestrator.rental import release_all, run
from orchestrator.task import Leaving
from tests.fakes.laptop import FakePerson, house
from tests.fakes.world import FakeMarket, Killed, World
from tests.scenario.matrix import task

pytestmark = pytest.mark.noleak


def test_an_offer_with_a_bad_quote_is_not_asked_again_and_the_reason_is_kept() -> None:
    w, asked = World("escrow"), []

    class Picky(FakeMarket):
        def prepare(self, offer: Offer, terms: Terms) -> Order:
            asked.append(offer.offer_id)
            if offer.offer_id == "offer-0":
                raise OfferGone("the quote names another renter")
            return super().prepare(offer, terms)

    run(replace(house(w), market=Picky(w)), task())
    assert asked == ["offer-0", "offer-1"]
    left = next(e for e in w.events if e.deed.step == "left")
    assert left.private["detail"] == "the quote names another renter"


def test_a_run_never_moves_to_another_market_than_the_one_confirmed() -> None:
    """Confirmed with play money, resumed after a real market was set up: refused, not rented."""
    w = World("escrow")

    def crash(phase: str, n: int) -> None:
        if w.events and str(w.events[-1].deed) == "run/agree" and w.events[-1].kind is Kind.DONE:
            raise Killed()

    with pytest.raises(Killed):
        run(house(w, crash), task())

    class Elsewhere(FakeMarket):
        def offers(self, wish: object) -> list[Offer]:
            return [replace(offer, market="real") for offer in super().offers(wish)]  # type: ignore[arg-type]

    with pytest.raises(Refused, match="confirmed for market escrow"):
        run(replace(house(w), market=Elsewhere(w)), task())
    assert w.rentals == []


def ctrl_c_at(w: World, *deeds: str) -> Callable[[str, int], None]:
    """An interrupt when each of these steps was begun, once."""
    left = list(deeds)

    def crash(phase: str, n: int) -> None:
        if left and w.events and str(w.events[-1].deed) == left[0] and w.events[-1].kind is Kind.INTENDED:
            left.pop(0)
            raise KeyboardInterrupt

    return crash


def test_an_interrupt_while_a_good_run_is_given_back_does_not_spoil_it() -> None:
    w = World("escrow")
    run(house(w, ctrl_c_at(w, "lease-1/wipe", "lease-1/settle"), answer="stop"), task())
    assert owed(w.events) == () and result_of(house(w).at("lease-1"), steps.COLLECT) is not None


def test_a_second_interrupt_does_not_stop_the_giving_back() -> None:
    """A double tap: the first stops the run, the second meets the release."""
    w = World("escrow")
    with pytest.raises(Interrupted):
        run(house(w, ctrl_c_at(w, "lease-1/install", "lease-1/wipe", "lease-1/end"), answer="stop"), task())
    assert not [o for o in owed(w.events) if o.scope != "run"]


def test_who_does_not_want_to_wait_leaves_it_to_the_journal() -> None:
    w = World("escrow")
    h = replace(house(w, ctrl_c_at(w, "lease-1/install", "lease-1/wipe")), person=FakePerson("stop", patient=False))
    with pytest.raises(KeyboardInterrupt):
        run(h, task())
    assert {"lease", "deposit", "files"} <= {o.what for o in owed(w.events)}
    release_all(house(w), Leaving(Reason.STOPPED))
    assert not [o for o in owed(w.events) if o.scope != "run"]


def test_a_run_that_a_person_stopped_is_confirmed_anew_before_another_node_is_rented() -> None:
    w = World("escrow")
    with pytest.raises(KeyboardInterrupt):       # stopped, and too impatient to wait until all was given back
        at = ctrl_c_at(w, "lease-1/install", "lease-1/wipe")
        run(replace(house(w, at), person=FakePerson("stop", patient=False)), task())

    class Unwilling(FakePerson):
        def confirm(self, agreement: Agreement) -> bool:
            return False

    with pytest.raises(Refused, match="not confirmed, no other node was rented"):
        run(replace(house(w), person=Unwilling("stop")), task())
    assert len(w.rentals) == 1
    run(house(w), task())
    assert len(w.rentals) == 2 and owed(w.events) == ()


@pytest.mark.parametrize("text", ["١.٠ USDC", "1.0\u00a0USDC", "1.0 EUR", "1,0 USDC", "1.0000001 USDC", "-1 USDC",
                                  "1e3 USDC"])
def test_money_is_written_in_plain_digits(text: str) -> None:
    with pytest.raises(ValueError):
        Money.parse(text, USDC)


def test_a_failed_run_keeps_what_stopped_it() -> None:
    w = World("escrow", faults={"job fails": 1})
    with pytest.raises(SealtuneError, match="training ended as failed"):
        run(house(w), task())
    left = next(e for e in w.events if e.deed.step == "left")
    assert "train.py:90" in left.private["detail"]
