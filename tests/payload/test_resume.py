"""Stopped or killed, a job goes on from its sealed checkpoint as if nothing had happened: the same numbers, bit by bit."""
from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.lab import task
from tests.payload.workshop import Outcome, Record, Workshop

pytestmark = pytest.mark.training
KNOBS = {**task.KNOBS, "max_steps": "60", "lora_dropout": "0.1", "eval_generations": "4"}
EXACT = ("loss", "grad_norm", "lr", "tok", "epoch")
Make = Callable[[], Workshop]


def numbers(outcome: Outcome) -> dict[int, list[str]]:
    return {int(step["step"]): [step[name] for name in EXACT] for step in outcome.of("step")}


def go_on(make: Make, first: Workshop, name: str, rows: list[Record], base: Path, python: Path,
          method: str) -> tuple[Workshop, Outcome]:
    """A second lease with its own key, given the first one's checkpoint."""
    second = make()
    counts = second.ship(rows)
    second.spec(counts, base, KNOBS, method=method, resume=first.bring_back(name, second))
    return second, second.run("train", base, python, words=("--checkpoint", "checkpoint-in.age"))


def test_after_sigterm_the_next_lease_goes_on_exactly(workshop: Make, base: Path, visits: list[Record],
                                                      trainer_python: Path) -> None:
    whole = workshop()
    whole.spec(whole.ship(visits), base, KNOBS)
    expected = whole.run("train", base, trainer_python)

    first = workshop()
    first.spec(first.ship(visits), base, KNOBS)
    running = first.start("train", base, trainer_python)
    running.wait_for(lambda record: record["kind"] == "step" and record["data"]["step"] == "10")
    running.signal(signal.SIGTERM)
    stopped = running.finish()
    assert stopped.code == 3
    assert stopped.kinds()[-1] == "published"
    done = max(numbers(stopped))
    assert [data["name"] for data in stopped.of("published")] == [f"checkpoint-{done}.age"]

    second, resumed = go_on(workshop, first, f"checkpoint-{done}.age", visits, base, trainer_python, "lora")
    assert resumed.code == 0, resumed.records[-1]
    assert {**numbers(stopped), **numbers(resumed)} == numbers(expected)
    assert min(numbers(resumed)) == done + 1
    assert second.opened("adapter.age") == whole.opened("adapter.age")


@pytest.mark.full
@pytest.mark.parametrize("method", ["lora", "qlora"])
def test_after_sigkill_too(workshop: Make, base: Path, visits: list[Record], trainer_python: Path,
                           method: str) -> None:
    whole = workshop()
    whole.spec(whole.ship(visits), base, KNOBS, method=method)
    expected = whole.run("train", base, trainer_python)

    first = workshop()
    first.spec(first.ship(visits), base, KNOBS, method=method, checkpoints={"every_seconds": 1, "keep": 2})
    running = first.start("train", base, trainer_python)
    name = running.wait_for(lambda record: record["kind"] == "published")["data"]["name"]
    running.signal(signal.SIGKILL)
    assert running.finish().code == -signal.SIGKILL

    second, resumed = go_on(workshop, first, name, visits, base, trainer_python, method)
    assert resumed.code == 0, resumed.records[-1]
    after = numbers(resumed)
    assert after and after == {step: line for step, line in numbers(expected).items() if step in after}
    assert second.opened("adapter.age") == whole.opened("adapter.age")


@pytest.mark.full
def test_a_finished_training_is_only_evaluated_again(workshop: Make, base: Path, visits: list[Record],
                                                     trainer_python: Path) -> None:
    first = workshop()
    first.spec(first.ship(visits), base, KNOBS)
    running = first.start("train", base, trainer_python)
    running.wait_for(lambda record: record["data"].get("phase") == "evaluating")
    running.signal(signal.SIGTERM)
    stopped = running.finish()
    assert stopped.code == 3
    assert stopped.of("published")[-1]["name"] == "checkpoint-60.age"
    second, resumed = go_on(workshop, first, "checkpoint-60.age", visits, base, trainer_python, "lora")
    assert resumed.code == 0, resumed.records[-1]
    assert resumed.of("step") == [] and resumed.of("result")[0]["steps"] == "60"
    assert len(second.opened("adapter.age")) > 400_000
