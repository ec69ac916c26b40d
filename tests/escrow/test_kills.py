"""SIGKILL at every step of sending: nothing is paid twice, nothing is lost, and the outbox knows what is open."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import cycle
from pathlib import Path

import pytest

from tests.fakes.labchain import Lab, lab

from .campaign import Campaign, everywhere
from .gate import RECEIPT, SEND, Kill
from .payer import Deposit, Payment

pytestmark = [pytest.mark.money, pytest.mark.noleak]
TROUBLE = [
    Kill(1, "after", method=SEND, trouble="drop"), Kill(1, "before", method=SEND, trouble="spike"),
    Kill(1, "after", method=SEND, trouble="reorg"), Kill(1, "answered", method=RECEIPT, trouble="reorg"),
]


@pytest.fixture(params=["instant", "1 s"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    with lab("anvil", tmp_path / "anvil") as found:
        if request.param == "1 s":
            found.rpc("evm_setAutomine", False)
            found.rpc("evm_setIntervalMining", 1)
        yield found


INSTANT = pytest.mark.parametrize("world", ["instant"], indirect=True)


@pytest.fixture
def campaign(world: Lab, tmp_path: Path) -> Campaign:
    return Campaign(world, tmp_path)


def nothing_twice_nothing_lost(campaign: Campaign, kills: int) -> None:
    found = campaign.figures()
    print(f"\n{found.kills} kills, {found.intents} intents, {found.doubled} doubled, {found.lost} lost")
    assert (found.doubled, found.lost) == (0, 0) and found.kills >= kills, found


def at_every_step(campaign: Campaign, make: Callable[[], Payment | Deposit], every: int = 1) -> None:
    """Each kill hits an intent of its own, so that it hits what it is aimed at; a few hit the same one again and again."""
    points = list(everywhere(len(campaign.questions(make()))))[::every]
    for kill in points:
        campaign.see_through(make(), [kill])
    campaign.see_through(make(), points[::5])


def three_at_once(campaign: Campaign, intents: int) -> None:
    """Three processes with one key, each killed at other moments."""
    moments = cycle(("after", "answered", "before"))
    lanes = [[(campaign.payment() if n % 3 else campaign.deposit(), [Kill(2 + (5 * n + 3 * lane) % 6, next(moments))])
              for n in range(intents)] for lane in range(3)]
    def go_down(lane: list[tuple[Payment | Deposit, list[Kill]]]) -> None:
        for intent, kills in lane:
            campaign.see_through(intent, kills)

    with ThreadPoolExecutor(3) as pool:
        list(pool.map(go_down, lanes))


def in_trouble(campaign: Campaign, make: Callable[[], Payment | Deposit]) -> None:
    """The chain drops what it took, becomes dear, or takes a block back, with the payer killed at that moment or not."""
    for kill in TROUBLE:
        for deadly in (True, False):
            campaign.see_through(make(), [replace(kill, deadly=deadly)])


@INSTANT
def test_killed_at_every_step_of_a_payment(campaign: Campaign) -> None:
    at_every_step(campaign, campaign.payment)
    nothing_twice_nothing_lost(campaign, 20)


@INSTANT
def test_a_client_that_writes_down_what_it_sent_pays_twice(campaign: Campaign) -> None:
    """Or the count above would prove nothing."""
    kills = [Kill(1, when, method=method) for when in ("before", "after") for method in (SEND, RECEIPT)]
    found = []
    for kill in kills:
        payment = campaign.payment()
        campaign.naively(payment, kill)
        found.append(campaign.times(payment))
    assert found == [1, 2, 2, 2]


@INSTANT
def test_three_processes_with_one_key(campaign: Campaign) -> None:
    three_at_once(campaign, 4)
    nothing_twice_nothing_lost(campaign, 9)


def test_dropped_dear_and_taken_back(campaign: Campaign) -> None:
    in_trouble(campaign, campaign.payment)
    nothing_twice_nothing_lost(campaign, 4)


@pytest.mark.full
def test_killed_at_every_step_of_a_deposit(campaign: Campaign) -> None:
    slow = not campaign.world.rpc("anvil_getAutomine")
    at_every_step(campaign, campaign.deposit, every=2 if slow else 1)
    nothing_twice_nothing_lost(campaign, 40 if slow else 80)


@pytest.mark.full
def test_all_of_it_at_once(campaign: Campaign) -> None:
    """Three processes, and the chain in trouble between their turns."""
    for _ in range(3):
        three_at_once(campaign, 10)
        in_trouble(campaign, campaign.deposit)
    nothing_twice_nothing_lost(campaign, 80)
