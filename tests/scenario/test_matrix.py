"""Crash matrix and seeds on the simulated world: no leak, no twin lease, no silent debt."""
from __future__ import annotations

import random

import pytest

from orchestrator.errors import Detached, Interrupted, SealtuneError, StillOwed
from orchestrator.rental import run
from tests.fakes.laptop import house
from tests.fakes.world import Killed, World
from tests.scenario.matrix import CASES, SHORT, Case, check, one, strikes, task

pytestmark = pytest.mark.noleak


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_scenario_ends_with_the_adapter_and_no_debt(case: Case) -> None:
    assert one(case, -1, "before", Killed, "resume")[1] == []


@pytest.mark.parametrize("case", [c for c in CASES if c.name in SHORT], ids=lambda c: c.name)
def test_a_strike_at_any_row_leaks_nothing(case: Case) -> None:
    assert {name: bad for name, bad in strikes(case) if bad} == {}


@pytest.mark.full
@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_a_strike_at_any_row_of_any_scenario_leaks_nothing(case: Case) -> None:
    assert {name: bad for name, bad in strikes(case) if bad} == {}


@pytest.mark.parametrize("seed", range(60))
def test_mixed_faults_and_repeated_kills(seed: int) -> None:
    assert play(seed) == []


@pytest.mark.full
def test_mixed_faults_and_repeated_kills_long() -> None:
    assert {seed: bad for seed in range(3000) if (bad := play(seed))} == {}


def play(seed: int) -> list[str]:
    """Three scenarios mixed, up to five kills or interrupts at random rows, resumed each time."""
    r = random.Random(seed)
    faults = dict(pair for c in r.sample(CASES, 3) for pair in c.faults if pair[0] != "wipe partial")
    w = World(r.choice(["escrow", "custodial", "lium", "ssh"]), faults=faults)
    for kills in range(r.randint(0, 5), -1, -1):
        strike = (r.randint(1, 40) if kills else -1, r.choice(["before", "after"]), r.choice([Killed, KeyboardInterrupt]))

        def crash(phase: str, n: int, strike: tuple[int, str, type[BaseException]] = strike) -> None:
            if (n, phase) == strike[:2]:
                raise strike[2]()

        try:
            run(house(w, crash, answer=r.choice(["wait", "stop", "detach"])), task(8_000_000))
            return check(w, "adapter", 8_000_000)
        except (Killed, KeyboardInterrupt, Interrupted, Detached):
            w.pass_time(r.choice([1, 45, 600, 5000]))
        except StillOwed as debt:
            if debt.exit_code == 3 and w.kind == "ssh":
                return []
            w.pass_time(600)
        except SealtuneError as over:
            expected = type(over).__name__ in ("Refused", "NoFunds", "StopRun")
            return check(w, "end", 8_000_000) + ([] if expected else [repr(over)])
    return []
