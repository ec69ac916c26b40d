"""The reference of what `--json` prints covers every command, and its own judge judges."""
from __future__ import annotations

import inspect
from typing import Any

import pytest
import typer

from orchestrator.cli.app import app
from orchestrator.cli.shapes import SHAPES, Failed, before, money, runs
from tests.fakes.shapes import misfits

GOOD: dict[str, Any] = {"rentals": [], "error": None}


def commands(group: typer.Typer, words: str = "") -> dict[str, Any]:
    found = {f"{words}{one.name}": one.callback for one in group.registered_commands}
    for inner in group.registered_groups:
        assert inner.typer_instance
        found |= commands(inner.typer_instance, f"{words}{inner.name} ")
    return found


def test_every_command_that_prints_json_has_a_shape_and_no_other() -> None:
    printing = {name for name, function in commands(app).items() if "json" in inspect.signature(function).parameters}
    assert printing == set(SHAPES)


def test_every_shape_is_used() -> None:
    made = {one for room in (before, money, runs) for one in vars(room).values() if isinstance(one, type) and one.__module__
            == room.__name__}
    text = "".join(inspect.getsource(room) for room in (before, money, runs)) + " ".join(s.__name__ for s in SHAPES.values())
    assert all(text.count(one.__name__) > 1 for one in made if one is not Failed)


@pytest.mark.parametrize(("shape", "value", "told"), [
    (runs.Rentals, GOOD, []), (runs.Rentals, {**GOOD, "more": 1}, [".more: not documented"]),
    (runs.Rentals, {"rentals": []}, [".error: missing"]), (runs.Rentals, [], [": no object"]),
    (runs.Rentals, {**GOOD, "error": {"message": "m", "hint": None, "exit_code": True}},
     [".error.exit_code: True is no int"]),
    (runs.Status, {"runs": {}}, [".runs: no list"]), (runs.Figures, {"exact_match": 1, "loss": None}, []),
    (runs.EndedRun, {"run": "x", "error": 3}, [".error: 3 is no str"]),
    (runs.Record, {"seq": 1, "at": 1, "kind": "odd", "data": {"a": 1}}, None)])
def test_the_judge(shape: Any, value: Any, told: list[str] | None) -> None:
    found = misfits(shape, value)
    assert found == told if told is not None else len(found) == 2
