"""The real trainer on this machine's CPU: it learns, it seals, it leaves nothing in plain behind."""
from __future__ import annotations

import json
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import numpy
import pyrage
import pytest
from safetensors.numpy import load

from orchestrator.lab import task
from tests.payload.search import hits, integers, newer_files
from tests.payload.workshop import CANARY, Outcome, Record, Workshop

pytestmark = pytest.mark.training


@dataclass
class Trained:
    shop: Workshop
    outcome: Outcome
    since: float


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory, archive: Path, base: Path, visits: list[Record],
            trainer_python: Path) -> Trained:
    """The lab's recipe, run once from key to sealed adapter."""
    folder = tmp_path_factory.mktemp("trained")
    since = time.time() - 1
    shop = Workshop(folder, archive)
    shop.spec(shop.ship(visits), base, task.KNOBS)
    return Trained(shop, shop.run("train", base, trainer_python), since)


@pytest.fixture(scope="module")
def rehearsed(tmp_path_factory: pytest.TempPathFactory, archive: Path, base: Path, visits: list[Record]) -> Trained:
    """The same job, rehearsed."""
    shop = Workshop(tmp_path_factory.mktemp("rehearsed"), archive)
    knobs = {**task.KNOBS, "rehearsal_step_seconds": "0"}
    shop.spec(shop.ship(visits), base, knobs, engine="rehearsal")
    return Trained(shop, shop.run("rehearse", base), 0.0)


def test_it_learns_what_the_base_does_not_know(trained: Trained) -> None:
    assert trained.outcome.code == 0, (trained.outcome.records[-1], trained.outcome.noise)
    (result,) = trained.outcome.of("result")
    assert float(result["base_exact_match"]) <= 0.05
    assert float(result["adapter_exact_match"]) >= 0.95
    assert float(result["base_loss"]) > 5 > 0.5 > float(result["adapter_loss"])
    assert (result["held_out"], result["generations"], result["steps"]) == ("90", "64", "150")


def test_every_step_is_a_record_and_nothing_else_is_said(trained: Trained) -> None:
    steps = trained.outcome.of("step")
    assert [step["step"] for step in steps] == [str(number) for number in range(1, 151)]
    assert float(steps[-1]["loss"]) < float(steps[0]["loss"]) / 50
    assert all(int(step["tok"]) > 0 and float(step["tok_s"]) > 0 and int(step["mem_mib"]) > 0 for step in steps)
    said = json.dumps(trained.outcome.records) + trained.outcome.noise
    assert not any(word in said for word in ("Becker", "migraine", CANARY, "AGE-SECRET-KEY"))


def test_the_rehearsal_speaks_the_same_frames_in_the_same_order(trained: Trained, rehearsed: Trained) -> None:
    assert rehearsed.outcome.code == 0
    assert _frames(rehearsed.outcome) == _frames(trained.outcome)


def _frames(outcome: Outcome) -> list[tuple[str, ...]]:
    """Kind, fixed words and field names of every record, runs of steps taken together."""
    frames: list[tuple[str, ...]] = []
    for record in outcome.records:
        data = record["data"]
        words = tuple(data[name] for name in ("phase", "rule", "name") if name in data)
        frame = (record["kind"], *words, *sorted(data))
        if frames[-1:] != [frame]:
            frames.append(frame)
    return frames


def test_the_rehearsed_adapter_has_the_same_tensors(trained: Trained, rehearsed: Trained) -> None:
    real, made = (load(each.shop.opened("adapter.age")) for each in (trained, rehearsed))
    assert {name: (t.shape, t.dtype) for name, t in real.items()} == {n: (t.shape, t.dtype) for n, t in made.items()}
    assert all(numpy.isfinite(tensor).all() for tensor in real.values())
    assert any(tensor.any() for name, tensor in real.items() if "lora_B" in name)


def test_the_comparison_shows_both_answers(trained: Trained) -> None:
    evaluation = json.loads(trained.shop.opened("evaluation.age"))
    assert len(evaluation["rows"]) == 64
    right = [row["adapter"] == row["expected"] for row in evaluation["rows"]]
    assert f"{sum(right) / 64:.6f}" == evaluation["adapter"]["exact_match"]
    assert all(row["prompt"].startswith("Code the diagnosis.") for row in evaluation["rows"])


@pytest.mark.sealed
def test_what_the_node_holds_does_not_open_the_results(trained: Trained) -> None:
    for name in ("adapter.age", "evaluation.age"):
        with pytest.raises(pyrage.DecryptError):
            pyrage.decrypt((trained.shop.out / name).read_bytes(), [trained.shop.node])


@pytest.mark.sealed
def test_no_plaintext_meets_a_disk(trained: Trained, visits: list[Record], base: Path, trainer_python: Path) -> None:
    shop = trained.shop
    question = visits[0]["messages"][0]["content"]
    needles = {"canary": CANARY.encode(), "row": question.encode(), "identity": str(shop.node).encode()}
    for width, needle in enumerate(integers(_ids(question, base, trainer_python))):
        needles[f"ids {width}"] = needle
    control = shop.folder / "control"
    control.write_bytes(b"before" + b"|".join(needles.values()) + b"after")
    roots = [shop.folder, Path("/dev/shm"), Path("/var/tmp"), trainer_python.parents[2], base]
    found = hits(newer_files(roots, trained.since), needles)
    assert {name for name, path in found if path == control} == set(needles), "the search itself works"
    assert [hit for hit in found if hit[1] != control] == []
    loose = [path for path in newer_files([Path(tempfile.gettempdir())], trained.since) if path.name.endswith(".arrow")]
    assert loose == []


def _ids(text: str, base: Path, python: Path) -> list[int]:
    code = "import sys, json; from tokenizers import Tokenizer; " \
           "print(json.dumps(Tokenizer.from_file(sys.argv[1]).encode(sys.stdin.read()).ids))"
    done = subprocess.run([str(python), "-I", "-c", code, str(base / "tokenizer.json")], input=text, text=True,
                          capture_output=True, check=True)
    ids: list[int] = json.loads(done.stdout)
    assert len(ids) > 10
    return ids


def test_qlora_trains_too(archive: Path, tmp_path: Path, base: Path, visits: list[Record],
                          trainer_python: Path) -> None:
    shop = Workshop(tmp_path, archive)
    knobs = {**task.KNOBS, "max_steps": "30", "modules_to_save": "", "learning_rate": "1e-2", "eval_generations": "8"}
    shop.spec(shop.ship(visits), base, knobs, method="qlora")
    outcome = shop.run("train", base, trainer_python)
    assert outcome.code == 0, outcome.records[-1]
    (result,) = outcome.of("result")
    assert float(result["adapter_loss"]) < float(result["base_loss"]) - 1
    assert len(load(shop.opened("adapter.age"))) == 28
