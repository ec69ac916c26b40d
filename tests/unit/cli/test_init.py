"""`sealtune init`, typed and asked: what it writes is read, fits its plan, and never goes over another file."""
from __future__ import annotations

import json
import os
import pty
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.app import app
from orchestrator.cli.dialogue import Dialogue
from orchestrator.cli.init import MARKETS
from orchestrator.cli.shapes import SHAPES
from orchestrator.errors import BadInput, Refused
from orchestrator.lab import task
from orchestrator.settings import load_run
from orchestrator.settings.schema import run_schema
from tests.fakes.shapes import misfits
from tests.fakes.sound import sound

Out = pytest.CaptureFixture[str]


@pytest.fixture
def work(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEALTUNE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "work"
    folder.mkdir()
    task.write(folder / "visits.jsonl", rows=60)
    monkeypatch.chdir(folder)
    return folder


def init(*words: str | Path) -> None:
    app(["init", *map(str, words)], standalone_mode=False)


def test_defaults_come_from_data_and_plan(work: Path, capsys: Out) -> None:
    init("--yes", "--json")
    tree: dict[str, Any] = json.loads(capsys.readouterr().out)
    run = load_run(work / "visits.yaml")
    assert misfits(SHAPES["init"], tree) == [] and tree["notes"] == [] and tree["plan"]["verdict"] == "fits"
    assert tree["data"] == {"rows": 60, "train": 54, "held_out": 6, "format": "messages"}
    assert (run.model, run.dataset, run.format) == ("sealtune-lab/tiny-llama", work / "visits.jsonl", "messages")
    assert (run.method, run.market, run.seconds, str(run.budget)) == ("lora", "lab", None, "1.00 USDC")
    assert dict(run.knobs) == tree["training"] == {"learning_rate": "0.005", "max_length": "256", "num_train_epochs": "3"}
    assert run.output == work / "adapters" / "visits"


def test_the_open_market_gets_a_model_without_a_gate_and_a_budget(work: Path, capsys: Out) -> None:
    init("letters.yaml", "--market", "open", "--yes")
    run = load_run(work / "letters.yaml")
    assert "note: no open market is set up yet" in capsys.readouterr().err
    assert (run.model, run.method, run.market) == ("Qwen/Qwen2.5-7B", "lora", "open")
    assert run.budget and 2_000_000 <= run.budget.units <= 50_000_000 and run.wish.vram_gib == 20


def test_the_own_server_needs_its_name_and_no_budget(work: Path) -> None:
    with pytest.raises(BadInput, match="host: must be"):
        init("--market", "ssh", "--yes")
    init("--market", "ssh", "--host", "me@gpu", "--yes")
    run = load_run(work / "visits.yaml")
    assert run.ssh and (run.ssh.host, run.ssh.user, run.budget) == ("gpu", "me", None)


def test_a_dataset_elsewhere_is_named_from_the_file(work: Path, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    init(tmp_path / "other" / "a.yaml", "--dataset", work / "visits.jsonl", "--yes")
    assert load_run(tmp_path / "other" / "a.yaml").dataset == work / "visits.jsonl"


def test_a_file_that_is_there_stays(work: Path) -> None:
    (work / "visits.yaml").write_text("mine")
    for words in (["--yes"], ["visits.yaml", "--dataset", "visits.jsonl", "--yes"]):
        with pytest.raises(BadInput, match="exists already"):
            init(*words)
    assert (work / "visits.yaml").read_text() == "mine"


def test_faulty_rows_are_told_and_nothing_is_written(work: Path) -> None:
    (work / "bad.jsonl").write_text('{"messages": []}\n' * 3)
    with pytest.raises(BadInput, match=r"bad\.jsonl:1"):
        init("--dataset", "bad.jsonl", "--yes")
    with pytest.raises(BadInput, match="no dataset is named"):
        init("--yes")                    # there are two now: which one is meant?
    assert not (work / "bad.yaml").exists() and not (work / "visits.yaml").exists()


def test_rows_that_deserve_a_look_are_named(work: Path, capsys: Out) -> None:
    (work / "visits.jsonl").write_bytes((work / "visits.jsonl").read_bytes() * 2)
    init("--yes")
    assert "note: the rows deserve a look (duplicate): sealtune data check visits.jsonl" in capsys.readouterr().err


def test_rows_that_seem_to_teach_facts_are_told(work: Path, capsys: Out) -> None:
    (work / "faq.jsonl").write_bytes(sound()["faq.jsonl"])
    init("--dataset", "faq.jsonl", "--yes")
    assert "which a training does badly: sealtune advise --dataset faq.jsonl" in capsys.readouterr().err


def test_a_dataset_where_the_run_file_belongs(work: Path) -> None:
    with pytest.raises(BadInput, match="a run file is called like"):
        init("visits.jsonl", "--yes")


def test_without_a_terminal_and_without_yes_it_says_so(work: Path) -> None:
    with pytest.raises(Refused, match="no terminal"):
        init()


@pytest.mark.parametrize("words", [["--market", "moon"], ["--model", "../x"], ["--budget", "eight"], ["--method", "full"]])
def test_what_will_not_do_is_told_before_a_file_is_there(words: list[str], work: Path) -> None:
    with pytest.raises(BadInput):
        init("--market", "open", "--yes", *words)
    assert not (work / "visits.yaml").exists()


def test_the_schema_is_printed(work: Path, capsys: Out) -> None:
    init("--schema")
    assert json.loads(capsys.readouterr().out) == run_schema()


def test_four_questions_on_a_terminal(work: Path, monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    here, there = pty.openpty()
    os.write(here, b"\nmoon\nopen\n\n3 USDC\n")
    with os.fdopen(there, closefd=True) as terminal:
        monkeypatch.setattr(sys, "stdin", terminal)
        init()
    os.close(here)
    run = load_run(work / "visits.yaml")
    assert (run.market, run.model, str(run.budget)) == ("open", "Qwen/Qwen2.5-7B", "3.00 USDC")
    asked = capsys.readouterr().err
    assert "which file holds your rows? [visits.jsonl] " in asked and "'moon' is not known here; one of open, lab" in asked


def said(*answers: str) -> Dialogue:
    left: Iterator[str] = iter(answers)
    return Dialogue(False, lambda question: next(left))


def test_enter_takes_the_default_and_a_beginning_is_enough() -> None:
    assert said("").text("which?", "this") == "this"
    assert said("s").choice("where?", MARKETS, "lab") == "ssh"
    assert said("").choice("where?", MARKETS, "lab") == "lab"


def test_what_is_no_answer_is_asked_again_three_times() -> None:
    assert said("moon", "open").choice("where?", MARKETS, "lab") == "open"
    with pytest.raises(BadInput, match="moon"):
        said("moon", "mars", "moon").choice("where?", MARKETS, "lab")
