"""cancel, reject, end, endSigned, settle: who may close when, and where every unit goes."""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .model import (
    ABANDONED,
    ACTIVE,
    BY_ANYONE,
    BY_PROVIDER,
    BY_RENTER,
    CANCELLED,
    CLOSED,
    ENDED,
    EXPIRED,
    FUNDED,
    NO_SHOW,
    REJECTED,
    price_ahead,
)
from .world import FEE_TAKER, NOTHING, OTHER_RENTER, PROVIDER, PURSE, RENTER, STRANGER, Person, World, refused

pytestmark = pytest.mark.money
REPORT = b"\xfe" * 32


@dataclass
class Paid:
    outcome: int
    by: Person
    provider: int = 0
    fee: int = 0


def assert_closed(world: World, id: bytes, paid: Paid) -> None:
    """The record, the balances and the sums all say the same."""
    r = world.rental(id)
    by = {RENTER: BY_RENTER, PROVIDER: BY_PROVIDER}.get(paid.by, BY_ANYONE)
    assert (r.state, r.outcome, r.closedBy, r.closedAt) == (CLOSED, paid.outcome, by, world.chain.now)
    assert (r.key, r.readyHash) == (NOTHING, NOTHING)
    assert (r.paid, r.fee, r.refunded) == (paid.provider, paid.fee, r.deposit - paid.provider - paid.fee)
    assert world.escrow.read("creditOf", PROVIDER.address) == paid.provider
    assert world.escrow.read("creditOf", FEE_TAKER.address) == paid.fee
    assert world.escrow.read("accruedOf", id) == world.escrow.read("credits") == paid.provider + paid.fee
    assert world.balance(RENTER.address) == PURSE - paid.provider - paid.fee
    assert world.escrow.read("held") == 0
    assert world.escrow.read("creditOf", RENTER.address) == 0


def end(world: World, id: bytes, by: Person, report: bytes = REPORT) -> None:
    world.escrow.send(by.address, "end", id, report)


# ---- before activation ----------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [RENTER, PROVIDER], ids=lambda p: p.name)
@pytest.mark.parametrize(("wait", "outcome"), [(0, CANCELLED), (600, CANCELLED), (601, NO_SHOW)])
def test_either_party_cancels_at_any_time(world: World, by: Person, wait: int, outcome: int) -> None:
    id = world.create()
    world.after(wait)
    world.escrow.send(by.address, "cancel", id)
    assert_closed(world, id, Paid(outcome, by))


@pytest.mark.parametrize(("wait", "fine"), [(599, False), (600, False), (601, True)])
def test_anyone_cancels_a_no_show(world: World, wait: int, fine: bool) -> None:
    id = world.create()
    world.after(wait)
    if fine:
        world.escrow.send(STRANGER.address, "cancel", id)
        assert_closed(world, id, Paid(NO_SHOW, STRANGER))
    else:
        with refused("NotAllowed", STRANGER.address):
            world.escrow.send(STRANGER.address, "cancel", id)


def test_a_running_rental_is_not_cancelled(world: World) -> None:
    id = world.active()
    with refused("WrongState", id, ACTIVE):
        world.escrow.send(RENTER.address, "cancel", id)


# ---- inspection -----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("wait", "fine"), [(0, True), (899, True), (900, True), (901, False)])
def test_rejection_pays_everything_back_until_the_last_second(world: World, wait: int, fine: bool) -> None:
    id = world.active()
    world.after(wait)
    if not fine:
        with refused("TooLate", world.rental(id).startedAt + 900, world.chain.now):
            world.escrow.send(RENTER.address, "reject", id, 3, REPORT)
        return
    world.escrow.send(RENTER.address, "reject", id, 3, REPORT)
    assert_closed(world, id, Paid(REJECTED, RENTER))
    r = world.rental(id)
    assert (r.reason, r.reportDigest) == (3, REPORT)


def test_the_window_is_the_quotes(world: World) -> None:
    id = world.active(world.quote(inspectionSeconds=300))
    assert world.rental(id).inspectionSeconds == 300
    world.after(301)
    with refused("TooLate", world.rental(id).startedAt + 300, world.chain.now):
        world.escrow.send(RENTER.address, "reject", id, 3, REPORT)


@pytest.mark.parametrize("by", [PROVIDER, STRANGER, OTHER_RENTER], ids=lambda p: p.name)
def test_only_the_renter_rejects(world: World, by: Person) -> None:
    id = world.active()
    with refused("NotAllowed", by.address):
        world.escrow.send(by.address, "reject", id, 3, REPORT)


def test_extending_does_not_reopen_the_inspection(world: World) -> None:
    id = world.active()
    world.after(901)
    world.escrow.send(RENTER.address, "extendTo", id, 7200, 2**200)
    with refused("TooLate"):
        world.escrow.send(RENTER.address, "reject", id, 3, REPORT)


def test_a_rejection_takes_back_extensions_too(world: World) -> None:
    id = world.active()
    world.escrow.send(RENTER.address, "extendTo", id, 7200, 2**200)
    world.escrow.send(RENTER.address, "reject", id, 1, REPORT)
    assert world.balance(RENTER.address) == PURSE


@pytest.mark.parametrize(("wait", "outcome", "pay"), [
    (0, ABANDONED, 0), (900, ABANDONED, 0), (901, ENDED, 901 * 400_000 // 3600)])
def test_a_provider_cannot_outrun_a_rejection(world: World, wait: int, outcome: int, pay: int) -> None:
    id = world.active()
    world.after(wait)
    end(world, id, PROVIDER)
    assert_closed(world, id, Paid(outcome, PROVIDER, pay))


def test_a_lease_shorter_than_its_inspection_is_paid_once_it_is_over(world: World) -> None:
    id = world.active(seconds=600)
    world.after(600)
    end(world, id, PROVIDER)
    assert_closed(world, id, Paid(EXPIRED, PROVIDER, 600 * 400_000 // 3600))


# ---- ending ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("by", [RENTER, PROVIDER], ids=lambda p: p.name)
def test_ending_pays_to_the_second(world: World, by: Person) -> None:
    id = world.active(world.quote(feeBps=250, feeRecipient=FEE_TAKER.address))
    world.after(1000)
    end(world, id, by)
    events = dict(world.escrow.events()[:1])
    accrued = 400_000 * 1000 // 3600
    fee = accrued * 250 // 10_000
    assert events["RentalClosed"] == {
        "id": id, "renter": RENTER.address, "provider": PROVIDER.address, "outcome": ENDED, "closedBy": by.address,
        "paid": accrued - fee, "fee": fee, "refunded": 400_000 - accrued, "reason": 0,
        "reportDigest": REPORT if by is RENTER else NOTHING}
    assert_closed(world, id, Paid(ENDED, by, accrued - fee, fee))


def test_the_report_is_the_renters_alone(world: World) -> None:
    ours, theirs = world.active(), world.active(key=b"\x02" * 32)
    world.after(1000)
    end(world, ours, RENTER)
    end(world, theirs, PROVIDER)
    assert world.rental(ours).reportDigest == REPORT
    assert world.rental(theirs).reportDigest == NOTHING


@pytest.mark.parametrize(("wait", "outcome"), [(3599, ENDED), (3600, EXPIRED), (3601, EXPIRED), (10**9, EXPIRED)])
def test_the_meter_stops_with_the_funded_time(world: World, wait: int, outcome: int) -> None:
    id = world.active()
    world.after(wait)
    end(world, id, RENTER)
    assert_closed(world, id, Paid(outcome, RENTER, 400_000 * min(wait, 3600) // 3600))


def test_ended_at_once_costs_nothing(world: World) -> None:
    id = world.active()
    end(world, id, RENTER)
    assert [name for name, _ in world.escrow.events()] == ["RentalClosed"]
    assert_closed(world, id, Paid(ENDED, RENTER))


@pytest.mark.parametrize(("wait", "fine"), [(0, False), (3599, False), (3600, True), (3601, True)])
def test_anyone_settles_what_is_over(world: World, wait: int, fine: bool) -> None:
    id = world.active()
    world.after(wait)
    if fine:
        world.escrow.send(STRANGER.address, "settle", id)
        assert_closed(world, id, Paid(EXPIRED, STRANGER, 400_000))
    else:
        with refused("TooEarly", world.rental(id).endsAt, world.chain.now):
            world.escrow.send(STRANGER.address, "settle", id)


def test_a_stranger_ends_nothing(world: World) -> None:
    id = world.active()
    world.after(10**6)
    with refused("NotAllowed", STRANGER.address):
        end(world, id, STRANGER)


def test_a_waiting_rental_is_neither_ended_nor_settled_nor_rejected(world: World) -> None:
    id = world.create()
    for call in (("end", id, REPORT), ("settle", id), ("reject", id, 1, REPORT), ("endSigned", id, REPORT, b"")):
        with refused("WrongState", id, FUNDED):
            world.escrow.send(RENTER.address, *call)


def test_closed_is_closed(world: World) -> None:
    id = world.active()
    world.after(1000)
    end(world, id, RENTER)
    calls: list[tuple[Any, ...]] = [("end", id, REPORT), ("settle", id), ("reject", id, 1, REPORT), ("cancel", id),
             ("activate", id, REPORT), ("extendTo", id, 7200, 2**200),
             ("endSigned", id, REPORT, RENTER.sign(world.end_digest(id, REPORT)))]
    for call in calls:
        for by in (RENTER, PROVIDER, STRANGER):
            with refused("WrongState", id, CLOSED):
                world.escrow.send(by.address, *call)
    assert world.balance(RENTER.address) == PURSE - 400_000 * 1000 // 3600


@settings(max_examples=60, deadline=None, database=None)
@given(price=st.integers(0, 2**96 - 1), seconds=st.integers(1, 2**32 - 1), share=st.floats(0, 1.2),
       fee=st.integers(0, 1500))
def test_no_unit_is_lost_or_made(price: int, seconds: int, share: float, fee: int) -> None:
    world = World()
    quote = world.quote(pricePerHour=price, minSeconds=0, maxSeconds=2**32 - 1, inspectionSeconds=0, feeBps=fee,
                        feeRecipient=FEE_TAKER.address)
    id = world.active(quote, seconds=seconds)
    world.after(int(seconds * share))
    end(world, id, RENTER)
    r = world.rental(id)
    accrued = price * min(int(seconds * share), seconds) // 3600
    assert r.deposit == price_ahead(price, seconds) == r.paid + r.fee + r.refunded
    assert (r.fee, r.paid) == (accrued * fee // 10_000, accrued - accrued * fee // 10_000)
    assert world.balance(world.escrow.address) == r.paid + r.fee == world.escrow.read("credits")


# ---- ended by a signature -------------------------------------------------------------------------------


def test_anyone_may_send_the_renters_signed_end(world: World) -> None:
    id = world.active()
    world.after(1000)
    assert world.escrow.read("endDigest", id, REPORT) == world.end_digest(id, REPORT)
    signature = RENTER.sign(world.end_digest(id, REPORT))
    world.escrow.send(STRANGER.address, "endSigned", id, REPORT, signature)
    assert_closed(world, id, Paid(ENDED, RENTER, 400_000 * 1000 // 3600))
    assert world.rental(id).reportDigest == REPORT


def test_a_signed_end_is_for_one_rental_and_one_report(world: World) -> None:
    id, other = world.active(), world.active(key=b"\x02" * 32)
    signature = RENTER.sign(world.end_digest(id, REPORT))
    for call in ((other, REPORT, signature), (id, NOTHING, signature),
                 (id, REPORT, PROVIDER.sign(world.end_digest(id, REPORT)))):
        with refused("BadSignature", RENTER.address):
            world.escrow.send(STRANGER.address, "endSigned", *call)
