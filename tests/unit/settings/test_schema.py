"""The schema of run files says what their reader says."""
from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator.dataset.formats import FORMATS
from orchestrator.errors import BadInput
from orchestrator.settings import load_run
from orchestrator.settings.schema import run_schema
from tests.fakes.jsonschema import faults

SCHEMA: Any = run_schema()
BASE = {"model": "a/b", "dataset": "x.jsonl", "budget": "8.00 USDC"}
SSH = {"model": "a/b", "dataset": "x.jsonl", "market": "ssh", "ssh": {"host": "gpu"}}
GOOD: list[dict[str, Any]] = [
    BASE, SSH, {**SSH, "budget": "1 USDC"}, {**BASE, "hours": "auto"}, {**BASE, "hours": 1.5}, {**BASE, "method": "lora"},
    {**BASE, "node": {"gpu": ["RTX 4090", "L4"], "vram_gib": 24, "min_reliability": 0.95}}, {**BASE, "node": {"gpu": "L4"}},
    {**BASE, "training": {"lora_r": 8, "learning_rate": 2e-4, "lora_dropout": 0, "target_modules": ["q_proj", "v_proj"],
                          "per_device_train_batch_size": "auto", "num_train_epochs": 0.5, "seed": 7}},
    {**BASE, "budget": " 0.5usdc"}, {**BASE, "revision": "refs/pr/1"}, {**BASE, "revision": 1234567},
    {**BASE, "engine": "rehearsal"},
    {**SSH, "ssh": {"host": "::1", "port": 22, "user": "me", "fingerprint": f"SHA256:{'a' * 43}", "keep": False}}]
BAD: list[dict[str, Any]] = [
    {}, {"model": "a/b"}, {**BASE, "budget": "8.00"}, {**BASE, "budget": 8}, {**BASE, "budget": "8 EUR"},
    {**BASE, "hours": 0}, {**BASE, "hours": 25}, {**BASE, "hours": "two"}, {**BASE, "method": "full"},
    {**BASE, "trainin": {}}, {**BASE, "model": "./here"}, {**BASE, "dataset": ""},
    {**BASE, "ssh": {"host": "gpu"}}, {"market": "ssh", **BASE},
    {**SSH, "ssh": {}}, {**SSH, "ssh": {"host": "two words"}}, {**BASE, "node": {"min_reliability": 1.5}},
    {**BASE, "node": {"vram_gib": "24"}}, {**BASE, "training": {"lora_r": 0}}, {**BASE, "training": {"learning_rate": 2}},
    {**BASE, "training": {"lora_dropout": 1}}, {**BASE, "training": {"num_train_epochs": 0}},
    {**BASE, "training": {"per_device_train_batch_size": 0}}, {**BASE, "training": {"lr_scheduler_type": "up"}},
    {**BASE, "format": "xml"}]


def read(folder: Path, page: dict[str, Any]) -> None:
    (folder / "x.yaml").write_text(json.dumps(page))
    load_run(folder / "x.yaml")


@pytest.mark.parametrize("page", GOOD, ids=str)
def test_what_the_reader_takes_is_good(page: dict[str, Any], tmp_path: Path) -> None:
    read(tmp_path, page)
    assert list(faults(SCHEMA, page)) == []


@pytest.mark.parametrize("page", BAD, ids=str)
def test_what_the_reader_refuses_is_marked(page: dict[str, Any], tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        read(tmp_path, page)
    assert list(faults(SCHEMA, page))


def test_every_format_of_the_dataset_room_may_be_written() -> None:
    assert set(SCHEMA["properties"]["format"]["enum"]) == {"auto", *FORMATS}


def test_every_field_that_needs_a_word_has_one() -> None:
    groups = {"": SCHEMA, **SCHEMA["$defs"]}
    silent = {f"{group}.{name}" for group, tree in groups.items() for name, one in tree["properties"].items()
              if "description" not in one}
    assert silent == {"Ssh.port"}


def test_it_has_no_keyword_of_the_library_in_it() -> None:
    assert not re.findall(r'"(ge|gt|le|lt)":', json.dumps(SCHEMA))
