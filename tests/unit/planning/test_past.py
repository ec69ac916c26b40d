"""Own past runs: what counts, and what it makes of the next one's hours."""
from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.domain.document import Json
from orchestrator.domain.event import GENESIS, Deed, Event, Kind
from orchestrator.domain.names import Instant
from orchestrator.domain.training import Pace
from orchestrator.planning.past import correction, pace_of

AGREED: dict[str, Json] = {"simulated": False, "forecast": {"card": "RTX 4090", "job_seconds": 1000}}


def row(step: str, kind: Kind, at: int, public: Json = None, item: str = "", scope: str = "lease-1") -> Event:
    return Event(1, GENESIS, Instant(at), Deed(scope, step, item), kind, (), (), public, None)


def journal(agreed: Json = AGREED, home_at: int = 2500) -> list[Event]:
    return [row("agree", Kind.DONE, 0, agreed, scope="run"), row("open", Kind.DONE, 10, {}),
            row("start", Kind.INTENDED, 990, {"spec": {"method": "qlora"}}), row("start", Kind.DONE, 1000, {}),
            row("arrived", Kind.NOTED, home_at, item="adapter.age")]


def test_a_run_that_took_half_as_long_again() -> None:
    assert pace_of(journal()) == Pace("RTX 4090", "qlora", 1500)


@pytest.mark.parametrize(("home_at", "permille"), [(1001, 250), (10**6, 4000)])
def test_an_accident_is_no_pace(home_at: int, permille: int) -> None:
    assert (pace := pace_of(journal(home_at=home_at))) and pace.permille == permille


@pytest.mark.parametrize("rows", [
    [], journal()[:-1], journal()[:3], journal({"simulated": True, "forecast": {"card": "x", "job_seconds": 9}}),
    journal({"simulated": False}), journal({"simulated": False, "forecast": None}),
    journal({"simulated": False, "forecast": {"card": "", "job_seconds": 0}}),
    [*journal(), replace(row("open", Kind.DONE, 3000), deed=Deed("lease-2", "open", ""))],
])
def test_what_does_not_count(rows: list[Event]) -> None:
    assert pace_of(rows) is None


def test_the_newest_of_the_same_card_and_method_count() -> None:
    paces = [Pace("a", "qlora", permille) for permille in (4000, 900, 1000, 1100, 1200, 1300)] + [Pace("a", "lora", 250)]
    assert correction(paces, "a", "qlora") == 1.1
    assert correction(paces, "b", "qlora") is None
