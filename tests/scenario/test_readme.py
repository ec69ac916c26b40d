"""README's examples, run as they stand there: its files are written, its commands typed, in the order of the page.

`sealtune demo` alone is left to its own test (test_journey_demo.py), which looks at every figure of it.
"""
from __future__ import annotations

import re
import subprocess
from pathlib import Path

import pytest

from orchestrator.cli import escrow, wallet
from orchestrator.cli.app import COMMANDS
from orchestrator.errors import __doc__ as tree
from orchestrator.lab import task
from orchestrator.settings import load_run, load_settings
from orchestrator.settings.values import MOST_DEPOSIT
from tests.payload.environment import training_python
from tests.scenario.lab import ROOT, Finished, Lab, Laptop

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
    (work / "password.txt").touch(0o600)
    (work / "password.txt").write_text("correct horse\n")
    assert "demo" in TYPED
    try:
        for typed in (t for t in TYPED if t != "demo"):
            words = typed.partition(" > ")[0].split()
            laptop.sealtune(*[str(work / w) if w.endswith((".yaml", ".txt", ".jsonl")) else w for w in words])
    finally:
        laptop.sealtune("lab", "up")
    assert (work / "adapters" / "visits" / "adapter_model.safetensors").is_file()
    assert load_run(work / "letters.yaml").dataset == work / "visits.jsonl"


@pytest.mark.training
def test_the_adapter_is_used_as_the_page_says(lab: Lab, finished: Finished) -> None:
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    base = Path(lab.facts["folder"]) / "hub" / "sealtune-lab" / "tiny-llama"
    code = code.replace("OWNER/MODEL", str(base)).replace("./adapters/visits", finished.result["adapter"])
    done = subprocess.run([training_python(), "-I", "-c", code], capture_output=True, text=True, check=True,
                          env={"HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"})
    assert "tensor(" in done.stdout


def test_every_command_stands_in_the_table() -> None:
    for name, _ in COMMANDS:
        assert f"`sealtune {name}" in README, name


def test_the_commands_of_wallet_and_escrow_stand_there_and_are_typed() -> None:
    for group in (wallet, escrow):
        for command in group.app.registered_commands:
            name = f"{group.__name__.rsplit('.', 1)[1]} {command.name}"
            assert f"`sealtune {name}" in README, name
            # a key is typed unseen, and a rental's id is another one each time: test_wallet_cli.py does both
            assert name in ("wallet import", "escrow show") or any(t.startswith(name) for t in TYPED), name


def test_the_settings_of_the_page_are_settings(tmp_path: Path) -> None:
    page, in_browser = re.findall(r"```yaml\n(open:\n.*?)```", README, re.DOTALL)
    (tmp_path / "settings.yaml").write_text(page)
    found = load_settings(tmp_path).open
    assert found and (found.chain_id, found.keystore, found.escrow) == (80002, tmp_path / "wallet.json", "")
    (tmp_path / "settings.yaml").write_text(re.sub(r"# (accept|most)", r"\1", page))
    found = load_settings(tmp_path).open
    assert found and found.accept_unaudited and found.most_deposit == MOST_DEPOSIT
    (tmp_path / "settings.yaml").write_text(in_browser)
    found = load_settings(tmp_path).open
    assert found and found.account == "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def test_the_prices_of_the_page_are_prices(tmp_path: Path) -> None:
    (page,) = re.findall(r"```yaml\n(prices:\n.*?)```", README, re.DOTALL)
    (tmp_path / "settings.yaml").write_text(page)
    (price,) = load_settings(tmp_path).prices
    assert (price.where, price.card, str(price.rate)) == ("My cloud", "RTX 4090", "0.35 USD per hour")


def test_the_exit_codes_are_those_of_the_program() -> None:
    for code in ("0", "1", "2", "3", "4", "5", "6", "130"):
        assert re.search(rf"^\| {code} \|", README, re.MULTILINE), code
        assert re.search(rf"(exit |Exit codes: |· ){code}\b", tree or ""), code


def test_the_rooms_of_the_page_are_there() -> None:
    house = README.split("How the house is built")[1]
    for room in re.findall(r"\b([a-z_]+)/", house):
        assert any((ROOT / folder / room).is_dir() for folder in (".", "orchestrator", "orchestrator/chain",
                                                            "orchestrator/chain/contracts")), room
    assert Path(ROOT / "orchestrator" / "rental.py").is_file()
