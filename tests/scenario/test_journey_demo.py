"""`sealtune demo` with the real trainer: it learns, and nothing of what it learned from lies in plain on the node."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.shapes import SHAPES
from tests.fakes.shapes import misfits
from tests.payload.search import hits, newer_files
from tests.scenario.lab import Lab
from tests.scenario.search import secret_needles

pytestmark = [pytest.mark.journey, pytest.mark.training, pytest.mark.sealed]


def test_the_demo_learns_and_leaves_nothing(lab: Lab, tmp_path: Path) -> None:
    laptop = lab.laptop(tmp_path / "laptop")
    usdc = lab.usdc
    demo = laptop.begin("demo", "--json")
    run = laptop.in_training(demo, steps=3)
    lines = (laptop.state / "demo" / "visits.jsonl").read_text().splitlines()[::30]
    rows = [json.loads(line)["messages"][0]["content"].splitlines()[-1].encode() for line in lines]
    needles = {f"row {n}": row for n, row in enumerate(rows)} | secret_needles(lab, laptop, run)
    assert hits(newer_files([lab.sandbox], 0), needles) == []
    result = demo.ended(0).tree

    assert misfits(SHAPES["run"], result) == []
    assert (result["verdict"], result["owed"], result["error"]) == ("verified", [], None)
    base, adapter = result["evaluation"]["base"], result["evaluation"]["adapter"]
    assert base["exact_match"] <= 0.05
    assert adapter["exact_match"] >= 0.95
    assert adapter["loss"] < base["loss"]
    money = {name: int(value) for name, value in result["money"].items() if name != "token"}
    assert money["deposit"] == money["paid"] + money["fee"] + money["refunded"]
    assert usdc - lab.usdc == money["paid"] + money["fee"]
    assert {p.name for p in Path(result["adapter"]).iterdir()} >= {"adapter_model.safetensors", "adapter_config.json"}
    assert hits(newer_files([lab.sandbox], 0), needles) == []
    assert lab.let_in() == ""
    assert laptop.sealtune("audit", run, "--json").tree["verdict"] == "verified"


@pytest.mark.full
@pytest.mark.noleak
def test_the_demo_killed_in_training_is_resumed_and_has_learned(lab: Lab, tmp_path: Path) -> None:
    """The crash, with the real trainer: it goes on without us, and the same run finishes."""
    laptop = lab.laptop(tmp_path / "laptop")
    demo = laptop.begin("demo")
    run = laptop.in_training(demo, steps=3)
    demo.kill()
    result = laptop.sealtune("resume", run, "--yes", "--json").tree
    assert (result["run"], result["verdict"], result["owed"]) == (run, "verified", [])
    assert result["evaluation"]["adapter"]["exact_match"] >= 0.95
    steps = [json.loads(line) for line in laptop.sealtune("logs", run, "--json").out.splitlines()]
    numbers = [int(one["data"]["step"]) for one in steps if one["kind"] == "step"]
    assert numbers == sorted(set(numbers)), "one job, no step twice"
