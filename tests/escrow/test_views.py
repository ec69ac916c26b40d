"""What can be read, by whom ever, at any time; and the table of who may call what."""
from __future__ import annotations

from typing import Any

import pytest

from orchestrator.chain.contracts import load

from . import model as m
from .world import (
    OTHER_PROVIDER,
    OTHER_RENTER,
    PROVIDER,
    RENTER,
    STRANGER,
    ZERO,
    Person,
    World,
    refused,
)

pytestmark = pytest.mark.money
REPORT = b"\xfe" * 32
NOBODY = b"\x77" * 32


def test_what_does_not_exist_reads_as_nothing(world: World) -> None:
    r = world.rental(NOBODY)
    assert (r.state, r.renter, r.deposit) == (m.NONE, ZERO, 0)
    assert world.escrow.read("statusOf", NOBODY) == m.STATUS_NONE
    assert world.escrow.read("accruedOf", NOBODY) == 0
    assert world.escrow.read("rentals", []) == []
    assert world.escrow.read("openRentals", STRANGER.address, False, 0, 10) == ((), 0)


def test_many_rentals_in_one_read(world: World) -> None:
    id = world.create()
    assert world.escrow.read("rentals", [NOBODY, id, id]) == [world.rental(NOBODY), world.rental(id), world.rental(id)]


def test_status_follows_the_clock(world: World) -> None:
    id = world.create()

    def at(time: int) -> int:
        world.chain.warp(time)
        return int(world.escrow.read("statusOf", id))

    start_by = world.rental(id).startBy
    assert [at(start_by - 1), at(start_by), at(start_by + 1)] == [m.STATUS_FUNDED, m.STATUS_FUNDED, m.STATUS_NO_SHOW]
    world.chain.warp(start_by)
    world.escrow.send(PROVIDER.address, "activate", id, REPORT)
    ends_at = world.rental(id).endsAt
    assert [at(ends_at - 1), at(ends_at), at(ends_at + 1)] == [m.STATUS_ACTIVE, m.STATUS_EXPIRED, m.STATUS_EXPIRED]
    world.escrow.send(STRANGER.address, "settle", id)
    assert at(ends_at + 9) == m.STATUS_CLOSED


def test_accrual_grows_and_stops(world: World) -> None:
    id = world.active(world.quote(pricePerHour=123_457))
    seen = []
    for _ in range(50):
        seen.append(world.escrow.read("accruedOf", id))
        world.after(97)
    assert seen == [123_457 * min(97 * n, 3600) // 3600 for n in range(50)]


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 8, 100])
def test_pages_cover_every_open_rental_once(world: World, limit: int) -> None:
    made = [world.create(key=bytes([n]) * 32) for n in range(1, 8)]
    assert pages(world, RENTER, False, limit) == made == pages(world, PROVIDER, True, limit)
    assert pages(world, RENTER, True, limit) == pages(world, PROVIDER, False, limit) == []


def test_closed_rentals_leave_both_lists_from_any_place(world: World) -> None:
    made = [world.create(world.quote(provider=p.address), key=bytes([n]) * 32, signer=p)
            for n, p in enumerate([PROVIDER, OTHER_PROVIDER, PROVIDER, OTHER_PROVIDER, PROVIDER], 1)]
    left = set(made)
    for index in (0, 4, 1, 2, 3):
        world.escrow.send(RENTER.address, "cancel", made[index])
        left.remove(made[index])
        mine, theirs = pages(world, RENTER, False, 2), pages(world, PROVIDER, True, 2)
        assert (set(mine), len(mine)) == (left, len(left))
        assert set(theirs) == left & {made[0], made[2], made[4]}


def test_a_cursor_beyond_the_end_finds_nothing(world: World) -> None:
    world.create()
    assert world.escrow.read("openRentals", RENTER.address, False, 1, 10) == ((), 0)
    assert world.escrow.read("openRentals", RENTER.address, False, 2**256 - 1, 2**256 - 1) == ((), 0)


def test_no_limit_is_too_large(world: World) -> None:
    id = world.create()
    assert world.escrow.read("openRentals", RENTER.address, False, 0, 2**256 - 1) == ((id,), 0)


def test_the_token_is_the_one_it_was_made_with(world: World) -> None:
    assert world.escrow.read("token") == world.token.address
    assert world.escrow.read("MAX_FEE_BPS") == 1500


# ---- who may call what ----------------------------------------------------------------------------------

_CALLS: dict[str, tuple[int | None, tuple[Any, ...], set[Person]]] = {  # seconds before, the call, who may
    "activate": (None, ("activate", REPORT), {PROVIDER}),
    "cancel": (None, ("cancel",), {RENTER, PROVIDER}),
    "cancel no-show": (601, ("cancel",), {RENTER, PROVIDER, STRANGER, OTHER_RENTER, OTHER_PROVIDER}),
    "reject": (1, ("reject", 1, REPORT), {RENTER}),
    "extendTo": (1, ("extendTo", 7200, 2**200), {RENTER}),
    "end early": (1, ("end", REPORT), {RENTER, PROVIDER}),
    "end": (1000, ("end", REPORT), {RENTER, PROVIDER}),
    "settle": (3600, ("settle",), {RENTER, PROVIDER, STRANGER, OTHER_RENTER, OTHER_PROVIDER}),
}


@pytest.mark.parametrize("caller", [RENTER, PROVIDER, STRANGER, OTHER_RENTER, OTHER_PROVIDER], ids=lambda p: p.name)
@pytest.mark.parametrize("name", _CALLS)
def test_who_may_call_what(world: World, name: str, caller: Person) -> None:
    wait, (function, *arguments), allowed = _CALLS[name]
    waits = wait is None or name == "cancel no-show"
    id = world.create() if waits else world.active()
    world.after(wait or 0)
    if caller in allowed:
        world.escrow.send(caller.address, function, id, *arguments)
    else:
        with refused("NotAllowed", caller.address):
            world.escrow.send(caller.address, function, id, *arguments)


@pytest.mark.parametrize("name", _CALLS)
def test_the_zero_address_is_nobody(world: World, name: str) -> None:
    """Nobody can send from it, but a node simulates calls from it: it must not pass for a session that is not there."""
    wait, (function, *arguments), allowed = _CALLS[name]
    if STRANGER in allowed:
        return
    id = world.create() if wait is None else world.active()
    world.after(wait or 0)
    with refused("NotAllowed", ZERO):
        world.escrow.send(ZERO, function, id, *arguments)


def test_nothing_else_changes_state() -> None:
    """A new function must come with a new row in this file."""
    writes = {e["name"] for e in load("RentalEscrow").abi
              if e["type"] == "function" and e["stateMutability"] not in ("view", "pure")}
    assert writes == {"create", "activate", "cancelQuote", "cancel", "reject", "extendTo", "end", "endSigned", "settle",
                      "withdraw", "withdrawFor", "createFromBudget", "openBudget", "closeBudget"}


def test_no_ether_is_taken() -> None:
    assert not [e for e in load("RentalEscrow").abi
                if e.get("stateMutability") == "payable" or e["type"] in ("receive", "fallback")]


def pages(world: World, who: Person, as_provider: bool, limit: int) -> list[bytes]:
    found: list[bytes] = []
    cursor = 0
    while True:
        ids, cursor = world.escrow.read("openRentals", who.address, as_provider, cursor, limit)
        assert (ids or cursor == 0) and len(ids) <= limit
        found += ids
        if cursor == 0:
            return found
