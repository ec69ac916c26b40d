"""A run file that is written is one that is read."""
from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import BadInput
from orchestrator.settings.draft import Draft, must_do, spelled, write
from orchestrator.settings.yamlfile import read_page

FIELDS = {"model": "a/b", "dataset": "x.jsonl", "budget": "8.00 USDC"}


def test_it_is_read_as_it_was_meant(tmp_path: Path) -> None:
    draft = Draft({**FIELDS, "method": "lora"}, {"vram_gib": 24}, {"learning_rate": Decimal("2e-4"), "max_length": 512},
                  why={"budget": "for two hours"})
    run = write(tmp_path / "one.yaml", draft)
    assert (run.model, run.dataset, run.method, run.wish.vram_gib) == ("a/b", tmp_path / "x.jsonl", "lora", 24)
    assert dict(run.knobs) == {"learning_rate": "0.0002", "max_length": "512"}
    lines = (tmp_path / "one.yaml").read_text().splitlines()
    assert lines[0] == "# yaml-language-server: $schema=sealtune.schema.json"
    assert lines[lines.index('budget: "8.00 USDC"') - 1] == "# for two hours"


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "one.yaml").write_text("mine")
    with pytest.raises(BadInput, match="exists already"):
        write(tmp_path / "one.yaml", Draft(FIELDS))
    assert (tmp_path / "one.yaml").read_text() == "mine"


def test_nothing_is_left_of_a_file_that_would_not_do(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="must be a hub id"):
        write(tmp_path / "one.yaml", Draft({**FIELDS, "model": "./mine"}))
    with pytest.raises(BadInput, match="no such file"):
        write(tmp_path / "nowhere" / "one.yaml", Draft(FIELDS))
    with pytest.raises(BadInput, match="cannot be written"):
        write(tmp_path / "one.yaml", Draft({**FIELDS, "dataset": "\udcff.jsonl"}))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(("field", "good", "bad"), [
    ("model", "owner/name", "../x"), ("budget", "8.00 USDC", "8 EUR"), ("host", "gpu.example", "two words"),
    ("host", "me@gpu", "@gpu"), ("method", "lora", "full")])
def test_an_answer_is_judged_before_it_is_written(field: str, good: str, bad: str) -> None:
    assert must_do(field, good) == good
    with pytest.raises(BadInput, match=f"^{field}: "):
        must_do(field, bad)


@given(st.text(st.characters(exclude_categories=("C", "Zl", "Zp")), max_size=60) | st.sampled_from(
    ["no", "On", "null", "~", "1e3", "0x10", "12:30", ".5", "-", "a: b", "# x", "'", '"', "\\", "&a", "*a", "!t", "./x",
     "y"]))
def test_any_text_comes_back(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "text.yaml"
    path.write_text(f"x: {spelled(text)}\n", encoding="utf-8")
    assert read_page(path).tree == {"x": text}
