"""activate and extendTo: the clock, and buying more of it."""
from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from .model import ACTIVE, FUNDED, price_ahead
from .world import OTHER_RENTER, PROVIDER, RENTER, STRANGER, Person, World, refused

pytestmark = pytest.mark.money


def extend(world: World, id: bytes, total: int, at_most: int = 2**200, sender: str = RENTER.address) -> None:
    world.escrow.send(sender, "extendTo", id, total, at_most)


def test_the_clock_starts_with_activation(world: World) -> None:
    id = world.create(seconds=3600)
    world.after(300)
    world.escrow.send(PROVIDER.address, "activate", id, b"\x4e" * 32)
    assert world.escrow.events() == [("RentalActivated", {
        "id": id, "startedAt": world.chain.now, "endsAt": world.chain.now + 3600, "readyHash": b"\x4e" * 32})]
    r = world.rental(id)
    assert (r.state, r.startedAt, r.endsAt) == (ACTIVE, world.chain.now, world.chain.now + 3600)
    assert r.readyHash == b"\x4e" * 32


@pytest.mark.parametrize(("wait", "fine"), [(599, True), (600, True), (601, False)])
def test_until_start_by_inclusive(world: World, wait: int, fine: bool) -> None:
    id = world.create()
    start_by = world.rental(id).startBy
    world.after(wait)
    if fine:
        world.escrow.send(PROVIDER.address, "activate", id, b"\x01" * 32)
    else:
        with refused("TooLate", start_by, start_by + 1):
            world.escrow.send(PROVIDER.address, "activate", id, b"\x01" * 32)


def test_only_once(world: World) -> None:
    id = world.active()
    with refused("WrongState", id, ACTIVE):
        world.escrow.send(PROVIDER.address, "activate", id, b"\x01" * 32)


def test_what_does_not_exist_is_not_activated(world: World) -> None:
    with refused("WrongState", b"\x01" * 32, 0):
        world.escrow.send(PROVIDER.address, "activate", b"\x01" * 32, b"\x01" * 32)


# ---- extension ------------------------------------------------------------------------------------------


def test_extension_adds_the_difference_of_the_totals(world: World) -> None:
    id = world.active(world.quote(pricePerHour=123_457), seconds=601)
    before = world.balance(RENTER.address)
    extra = price_ahead(123_457, 1801) - price_ahead(123_457, 601)
    extend(world, id, 1801, extra)
    r = world.rental(id)
    assert world.escrow.read("held") == r.deposit == price_ahead(123_457, 1801)
    assert (r.fundedSeconds, r.endsAt) == (1801, r.startedAt + 1801)
    assert world.balance(RENTER.address) == before - extra


def test_extension_says_so(world: World) -> None:
    id = world.active()
    extend(world, id, 7200)
    events = world.escrow.events()
    ends_at = world.rental(id).endsAt
    wanted = {"id": id, "fundedSeconds": 7200, "endsAt": ends_at, "deposit": 800_000}
    assert events == [("RentalExtended", wanted)]


def test_a_repeated_extension_costs_nothing(world: World) -> None:
    id = world.active()
    extend(world, id, 7200)
    with refused("BadSeconds", 7200, 7201, 36_000):
        extend(world, id, 7200)
    assert world.escrow.read("held") == 800_000


@settings(max_examples=25, deadline=None, database=None)
@given(price=st.integers(1, 10**7), steps=st.lists(st.integers(1, 400), min_size=1, max_size=8))
def test_many_small_extensions_cost_as_much_as_one(price: int, steps: list[int]) -> None:
    world = World()
    id, total = world.active(world.quote(pricePerHour=price), seconds=60), 60
    for step in steps:
        total += step
        extend(world, id, total)
        assert world.rental(id).deposit == world.escrow.read("held") == price_ahead(price, total)


@pytest.mark.parametrize(("total", "fine"), [
    (3599, False), (3600, False), (3601, True), (36_000, True), (36_001, False)])
def test_longer_and_within_the_quote(world: World, total: int, fine: bool) -> None:
    id = world.active()
    if fine:
        extend(world, id, total)
    else:
        with refused("BadSeconds", total, 3601, 36_000):
            extend(world, id, total)


@pytest.mark.parametrize(("wait", "fine"), [(3599, True), (3600, False), (3601, False)])
def test_only_while_it_runs(world: World, wait: int, fine: bool) -> None:
    id = world.active(seconds=3600)
    world.after(wait)
    if fine:
        extend(world, id, 3700)
    else:
        with refused("TooLate"):
            extend(world, id, 3700)


def test_never_more_than_the_renter_allowed(world: World) -> None:
    id = world.active()
    with refused("AboveMaximum", 400_000, 399_999):
        extend(world, id, 7200, 399_999)
    extend(world, id, 7200, 400_000)


@pytest.mark.parametrize("sender", [PROVIDER, STRANGER, OTHER_RENTER])
def test_only_the_renter_extends(world: World, sender: Person) -> None:
    id = world.active()
    with refused("NotAllowed", sender.address):
        extend(world, id, 7200, sender=sender.address)


def test_not_before_activation(world: World) -> None:
    id = world.create()
    with refused("WrongState", id, FUNDED):
        extend(world, id, 7200)


def test_a_refused_payment_extends_nothing(world: World) -> None:
    id = world.active()
    world.pause()
    with refused("Error", "Pausable: paused"):
        extend(world, id, 7200)
    assert world.rental(id).fundedSeconds == 3600
