"""The state machine, short on every run, long under `full`."""
from __future__ import annotations

import os

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis.stateful import run_state_machine_as_test

from .chain import Chain
from .machine import EscrowMachine

pytestmark = pytest.mark.money
# Of a planted mistake (mutants.py) nobody wants to see the shortest story.
_PHASES = [p for p in Phase if p is not Phase.shrink or "SEALTUNE_TEST_ESCROW" not in os.environ]


def play(examples: int, steps: int) -> None:
    run_state_machine_as_test(EscrowMachine, settings=settings(
        max_examples=examples, stateful_step_count=steps, deadline=None, database=None, phases=_PHASES,
        suppress_health_check=[HealthCheck.too_slow]))


def test_contract_and_model_agree_whatever_people_do() -> None:
    before = Chain.calls
    play(examples=100, steps=40)
    assert Chain.calls - before >= 30_000


@pytest.mark.full
def test_contract_and_model_agree_in_long_stories() -> None:
    play(examples=600, steps=60)
