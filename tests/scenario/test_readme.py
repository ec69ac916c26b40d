"""README's examples, run as they stand there: its files are written, its commands typed, in the order of the page.

`sealtune demo` alone is left to its own test (test_journey_demo.py), which looks at every figure of it.
"""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from orchestrator.cli.app import COMMANDS
from orchestrator.errors import __doc__ as tree
from orchestrator.lab import task
from tests.scenario.lab import ROOT, Lab, Laptop

pytestmark = pytest.mark.journey
README = (ROOT / "README.md").read_text()
FILES = dict(re.findall(r"```yaml\n# (\S+\.yaml)\n(.*?)```", README, re.DOTALL))
TYPED = [line for block in re.findall(r"```console\n(.*?)```", README, re.DOTALL)
         for line in re.findall(r"^\$ sealtune (.+)$", block, re.MULTILINE)]


def test_the_examples_do_what_they_say(lab: Lab, laptop: Laptop) -> None:
    work = laptop.folder / "work"
    for name, text in FILES.items():
        (work / name).write_text(text)
    task.write(work / "visits.jsonl", rows=60)
    assert "demo" in TYPED
    try:
        for typed in (t for t in TYPED if t != "demo"):
            laptop.sealtune(*[str(work / w) if w.endswith(".yaml") else w for w in typed.split()])
    finally:
        laptop.sealtune("lab", "up")
    assert (work / "adapters" / "visits" / "adapter_model.safetensors").is_file()


def test_every_command_stands_in_the_table() -> None:
    for name, _ in COMMANDS:
        assert f"`sealtune {name}" in README, name


def test_the_exit_codes_are_those_of_the_program() -> None:
    for code in ("0", "1", "2", "3", "4", "5", "6", "130"):
        assert re.search(rf"^\| {code} \|", README, re.MULTILINE), code
        assert re.search(rf"(exit |Exit codes: |· ){code}\b", tree or ""), code


def test_the_rooms_of_the_page_are_there() -> None:
    house = README.split("How the house is built")[1]
    for room in re.findall(r"\b([a-z_]+)/", house):
        assert any((ROOT / folder / room).is_dir() for folder in (".", "orchestrator", "orchestrator/chain/contracts")), room
    assert Path(ROOT / "orchestrator" / "rental.py").is_file()
