"""The rehearsal alone: frames, files, signals and exit codes, in seconds and without torch."""
from __future__ import annotations

import io
import json
import re
import signal
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from safetensors.numpy import load

from tests.payload.workshop import CANARY, Record, Workshop, chat, digest

QUICK = {"rehearsal_steps": "5", "rehearsal_step_seconds": "0.001"}
Make = Callable[[], Workshop]


def rehearsed(make: Make, base: Path, knobs: dict[str, str], **changes: Any) -> Workshop:
    shop = make()
    counts = shop.ship([chat(f"question {n}", f"answer {n}", "held_out" if n > 7 else "train") for n in range(10)])
    shop.spec(counts, base, knobs, engine="rehearsal", **changes)
    return shop


def is_step(number: int) -> Callable[[Record], bool]:
    return lambda record: record["kind"] == "step" and record["data"]["step"] == str(number)


def test_a_whole_rehearsal_leaves_sealed_results_and_exit_0(workshop: Make, base: Path) -> None:
    shop = rehearsed(workshop, base, QUICK)
    outcome = shop.run("rehearse", base)
    assert outcome.code == 0
    assert [data["phase"] for data in outcome.of("phase")] == [
        "checking", "loading", "training", "evaluating", "sealing", "done"]
    assert [data["step"] for data in outcome.of("step")] == ["1", "2", "3", "4", "5"]
    assert sorted(file.name for file in shop.out.iterdir()) == ["adapter.age", "evaluation.age"]
    for published in outcome.of("published"):
        sealed = (shop.out / published["name"]).read_bytes()
        assert (published["bytes"], published["sha256"]) == (str(len(sealed)), digest(sealed))


def test_its_adapter_has_the_names_and_shapes_of_a_lora(workshop: Make, base: Path) -> None:
    shop = rehearsed(workshop, base, {**QUICK, "lora_r": "8", "target_modules": "q_proj,down_proj"})
    shop.run("rehearse", base)
    shapes = {name: tensor.shape for name, tensor in load(shop.opened("adapter.age")).items()}
    stem = "base_model.model.model.layers.1"
    assert len(shapes) == 8
    assert shapes[f"{stem}.self_attn.q_proj.lora_A.weight"] == (8, 64)
    assert shapes[f"{stem}.mlp.down_proj.lora_A.weight"] == (8, 192)
    assert shapes[f"{stem}.mlp.down_proj.lora_B.weight"] == (64, 8)


def test_its_evaluation_speaks_of_the_held_out_rows(workshop: Make, base: Path) -> None:
    shop = rehearsed(workshop, base, QUICK)
    shop.run("rehearse", base)
    evaluation = json.loads(shop.opened("evaluation.age"))
    assert evaluation["schema"] == "sealtune/evaluation/1"
    assert [row["expected"] for row in evaluation["rows"]] == ["answer 8", "answer 9"]
    assert evaluation["adapter"]["n"] == "2"


def test_text_rows_have_no_exact_match(workshop: Make, base: Path) -> None:
    shop = workshop()
    counts = shop.ship([{"split": "train", "text": "one"}, {"split": "held_out", "text": "two"}], kind="text")
    shop.spec(counts, base, QUICK, engine="rehearsal")
    (result,) = shop.run("rehearse", base).of("result")
    assert result["adapter_exact_match"] == "" and result["adapter_loss"] != ""
    assert json.loads(shop.opened("evaluation.age"))["rows"] == []


def test_sigterm_seals_a_last_checkpoint_and_a_second_lease_goes_on(workshop: Make, base: Path) -> None:
    first = rehearsed(workshop, base, {**QUICK, "rehearsal_steps": "1000", "rehearsal_step_seconds": "0.01"})
    running = first.start("rehearse", base)
    running.wait_for(is_step(3))
    running.signal(signal.SIGTERM)
    outcome = running.finish()
    assert outcome.code == 3
    assert outcome.kinds()[-1] == "published"
    name = outcome.of("published")[-1]["name"]
    step = int(name.removeprefix("checkpoint-").removesuffix(".age"))
    assert outcome.of("step")[-1]["step"] == str(step)

    knobs = {**QUICK, "rehearsal_steps": str(step + 2)}
    second = rehearsed(workshop, base, knobs)
    spec = json.loads((second.folder / "spec.json").read_text())
    second.spec((spec["train_rows"], spec["held_out_rows"]), base, knobs, engine="rehearsal",
                resume=first.bring_back(name, second))
    resumed = second.run("rehearse", base, words=("--checkpoint", "checkpoint-in.age"))
    assert resumed.code == 0
    assert [data["step"] for data in resumed.of("step")] == [str(step + 1), str(step + 2)]


def test_sigkill_leaves_only_whole_files(workshop: Make, base: Path) -> None:
    shop = rehearsed(workshop, base, {**QUICK, "rehearsal_steps": "100000"},
                     checkpoints={"every_seconds": 1, "keep": 2})
    running = shop.start("rehearse", base)
    running.wait_for(lambda record: record["kind"] == "published")
    running.signal(signal.SIGKILL)
    assert running.finish().code == -signal.SIGKILL
    names = [file.name for file in shop.out.iterdir() if not file.name.endswith(".part")]
    assert names
    for name in names:
        assert zipfile.ZipFile(io.BytesIO(shop.opened(name))).testzip() is None


def test_only_the_newest_checkpoints_are_kept(workshop: Make, base: Path) -> None:
    shop = rehearsed(workshop, base, {**QUICK, "rehearsal_steps": "25", "rehearsal_step_seconds": "0.1"},
                     checkpoints={"every_seconds": 1, "keep": 1})
    outcome = shop.run("rehearse", base)
    names = [data["name"] for data in outcome.of("published") if data["name"].startswith("checkpoint")]
    assert len(names) >= 2
    assert [file.name for file in shop.out.glob("checkpoint-*")] == names[-1:]


def test_a_hanging_job_shows_no_secret_and_still_stops(workshop: Make, base: Path) -> None:
    shop = rehearsed(workshop, base, {**QUICK, "rehearsal_hang": "1"})
    running = shop.start("rehearse", base)
    running.wait_for(lambda record: record["data"].get("phase") == "training")
    process = Path("/proc") / str(running.process.pid)
    for place in ("environ", "cmdline"):
        shown = (process / place).read_bytes()
        assert str(shop.node).encode() not in shown and CANARY.encode() not in shown
    assert re.search(r"^Max core file size +0 +0 ", (process / "limits").read_text(), re.MULTILINE)
    running.signal(signal.SIGTERM)
    assert running.finish().code == 3


def test_a_failing_job_says_a_type_and_a_place(workshop: Make, base: Path) -> None:
    outcome = rehearsed(workshop, base, {**QUICK, "rehearsal_fail": "1"}).run("rehearse", base)
    assert outcome.code == 1
    (error,) = outcome.of("error")
    assert error["type"] == "RehearsedFault" and error["phase"] == "training"
    assert error["where"].startswith("rehearse.py:")


def test_a_job_out_of_time_stops_by_itself(workshop: Make, base: Path) -> None:
    shop = rehearsed(workshop, base, {**QUICK, "rehearsal_hang": "1"},
                     limits={"steps": 10, "seconds": 1, "artifact_bytes": 1 << 20, "records": 1000})
    outcome = shop.run("rehearse", base)
    assert outcome.code == 3
    assert outcome.of("published")[-1]["name"] == "checkpoint-0.age"


def test_the_record_book_never_overflows(workshop: Make, base: Path) -> None:
    records = 80
    shop = rehearsed(workshop, base, {**QUICK, "rehearsal_steps": "200", "rehearsal_step_seconds": "0"},
                     limits={"steps": 1000, "seconds": 60, "artifact_bytes": 1 << 20, "records": records})
    outcome = shop.run("rehearse", base)
    assert outcome.code == 0 and outcome.kinds()[-1] == "phase"
    assert len(outcome.records) <= records
