"""The state machine, short on every run, long under `full`."""
from __future__ import annotations

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from .machine import EscrowMachine

pytestmark = pytest.mark.money
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow], "database": None}


def test_contract_and_model_agree_whatever_people_do() -> None:
    run_state_machine_as_test(EscrowMachine, settings=settings(max_examples=40, stateful_step_count=30, **_COMMON))


@pytest.mark.full
def test_contract_and_model_agree_in_long_stories() -> None:
    run_state_machine_as_test(EscrowMachine, settings=settings(max_examples=1500, stateful_step_count=60, **_COMMON))
