"""The run file: what is read, and what a person is told when it is wrong."""
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.document import encode
from orchestrator.domain.lease import Wish
from orchestrator.domain.money import USDC, Money
from orchestrator.errors import BadInput
from orchestrator.settings import RunFile, SshHost, load_run

BASE = """model: meta-llama/Llama-3.1-8B
dataset: contracts.jsonl
budget: "8.00 USDC"
"""
WHOLE = BASE + """revision: 1234567
format: messages
method: lora
hours: 1.5
output: ./adapters/mine
node: {gpu: ["RTX 4090", "RTX 6000 Ada"], vram_gib: 24, ram_gib: 32, disk_gib: 100, min_reliability: 0.95}
training:
  lora_r: 16
  learning_rate: 2e-4
  lora_dropout: 0
  num_train_epochs: 0.5
  per_device_train_batch_size: auto
  target_modules: [q_proj, v_proj]
  seed: 7
"""


def read(folder: Path, text: str) -> RunFile:
    path = folder / "contracts.yaml"
    path.write_text(text)
    return load_run(path)


def refused(folder: Path, text: str) -> BadInput:
    with pytest.raises(BadInput) as caught:
        read(folder, text)
    assert "\n" not in str(caught.value) and caught.value.exit_code == 2
    return caught.value


def test_a_whole_file(tmp_path: Path) -> None:
    run = read(tmp_path, WHOLE)
    assert (run.model, run.revision, run.format, run.method, run.market) == \
        ("meta-llama/Llama-3.1-8B", "1234567", "messages", "lora", "open")
    assert run.seconds == 5400 and run.budget == Money(8_000_000, USDC) and run.seed == 7 and run.engine == "trl"
    assert run.dataset == tmp_path / "contracts.jsonl" and run.output == tmp_path / "adapters/mine"
    assert run.wish == Wish(("RTX 4090", "RTX 6000 Ada"), 24, 32, 100, 950)
    assert dict(run.knobs) == {"lora_r": "16", "learning_rate": "2e-4", "lora_dropout": "0", "num_train_epochs": "0.5",
                               "per_device_train_batch_size": "auto", "target_modules": "q_proj,v_proj"}
    assert list(run.knobs) == sorted(run.knobs)
    encode(run.knobs)


def test_what_is_not_written_has_a_default(tmp_path: Path) -> None:
    run = read(tmp_path, BASE)
    assert (run.revision, run.format, run.method, run.seconds, run.knobs) == ("main", "auto", "qlora", None, ())
    assert run.output == tmp_path / "adapters/contracts" and run.wish == Wish()


def test_no_is_a_word(tmp_path: Path) -> None:
    assert read(tmp_path, BASE.replace("meta-llama/Llama-3.1-8B", "no/yes")).model == "no/yes"


def test_the_own_server_needs_no_budget(tmp_path: Path) -> None:
    text = "model: a/b\ndataset: x.jsonl\nmarket: ssh\nssh: {host: gpu, port: 2222, identity: keys/id}\n"
    run = read(tmp_path, text)
    assert run.budget is None and run.ssh == SshHost("gpu", 2222, None, tmp_path / "keys/id", None)


@pytest.mark.parametrize(("line", "told", "hint"), [
    ("trainin: {}", "contracts.yaml:4: trainin: unknown field", "did you mean `training`"),
    ("training: {lora_rr: 3}", "contracts.yaml:4: training.lora_rr: unknown field", "did you mean `lora_r`"),
    ("node: {gpus: a}", "contracts.yaml:4: node.gpus: unknown field", "did you mean `gpu`"),
    ("training:\n  lora_r: x", "contracts.yaml:5: training.lora_r: must be a whole number, not 'x'", None),
    ("training: {lora_r: 0}", "contracts.yaml:4: training.lora_r: must be at least 1, not 0", None),
    ("training: {lora_r: 2.5}", "contracts.yaml:4: training.lora_r: must be a whole number, not 2.5", None),
    ("training: {lora_r: yes}", "contracts.yaml:4: training.lora_r: must be a whole number, not 'yes'", None),
    ("training: {lora_r: true}", "contracts.yaml:4: training.lora_r: must be a whole number, not true", None),
    ("training: {learning_rate: 0}", "contracts.yaml:4: training.learning_rate: must be more than 0 and at most 1, "
                                     "not 0", None),
    ("training: {learning_rate: .inf}", "contracts.yaml:4: training.learning_rate: not a number: '.inf'", None),
    ("training: {lora_dropout: 1}", "contracts.yaml:4: training.lora_dropout: must be less than 1, not 1", None),
    ("training: {target_modules: lm_head}", "contracts.yaml:4: training.target_modules: must be modules other than "
                                            "lm_head, which goes into modules_to_save, not 'lm_head'", None),
    ("training: {rehearsal_steps: 3}", "contracts.yaml:4: training.rehearsal_steps: unknown field", None),
    ("training: 3", "contracts.yaml:4: training: must be a group of fields, not 3", None),
    ("method: full", "contracts.yaml:4: method: must be lora or qlora (training all weights is not supported yet), "
                     "not 'full'", None),
    ("method: qlra", "contracts.yaml:4: method: must be one of 'lora' or 'qlora', not 'qlra'", "did you mean `qlora`"),
    ("hours: 25", "contracts.yaml:4: hours: must be auto, or a number of hours up to 24, not 25", None),
    ("hours: 0", "contracts.yaml:4: hours: must be auto, or a number of hours up to 24, not 0", None),
    ("revision: ../x", "contracts.yaml:4: revision: must be a branch, a tag or a commit, not '../x'", None),
    ("market: ssh", "contracts.yaml:4: market: ssh needs the server", "add `ssh: {host: …}` to the run file"),
    ("ssh: {host: a}", "contracts.yaml:4: ssh: is not used with market: open", None),
    ("model: a/b", "contracts.yaml:4: model: written twice", None),
    ("a: &x 1\nb: *x", "contracts.yaml:5: b: aliases (*name) are not used here, write the value again", None),
    ("x: !!python/name:os.system ''", "contracts.yaml:4: x: a plain value is needed, not one of kind "
                                      "'python/name:os.system'", None),
    ("training: {lora_r: [1", "contracts.yaml:5: not valid YAML: expected ',' or ']', but got '<stream end>'", None),
])
def test_told_with_file_line_field_and_value(tmp_path: Path, line: str, told: str, hint: str | None) -> None:
    error = refused(tmp_path, BASE + line + "\n")
    assert str(error) == told
    assert hint is None or error.hint == hint


@pytest.mark.parametrize(("text", "told"), [
    ("", "contracts.yaml:1: model is missing (and 1 more)"),
    ("dataset: x\nmodle: a/b\n", "contracts.yaml:2: modle: unknown field (and 1 more)"),
    ("- a\n- b\n", "contracts.yaml:1: fields are needed, one `name: value` a line"),
    ("model: ./mine\ndataset: x\n", "contracts.yaml:1: model: must be a hub id like owner/name (a local folder cannot "
                                    "be used yet), not './mine'"),
    ("model: a/b\ndataset: x\nbudget: 8\n", 'contracts.yaml:3: budget: must be text with its currency, like "8.00 '
                                            'USDC", not 8'),
    ("model: a/b\ndataset: x\nbudget: 8 EUR\n", 'contracts.yaml:3: budget: EUR where USDC is needed; like "8.00 '
                                                "USDC\", not '8 EUR'"),
    ("model: a/b\ndataset: x\n", "contracts.yaml:1: budget is missing"),
])
def test_told_about_the_whole(tmp_path: Path, text: str, told: str) -> None:
    assert str(refused(tmp_path, text)) == told


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        load_run(tmp_path / "none.yaml")


def test_the_rehearsal_has_its_own_knobs(tmp_path: Path) -> None:
    run = read(tmp_path, BASE + "engine: rehearsal\ntraining: {rehearsal_steps: 5, rehearsal_step_seconds: 0.01}\n")
    assert run.engine == "rehearsal" and dict(run.knobs)["rehearsal_step_seconds"] == "0.01"


@given(st.text(max_size=200))
def test_any_text_is_a_run_or_bad_input(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "any.yaml"
    path.write_text(text, errors="replace")
    try:
        load_run(path)
    except BadInput as problem:
        assert "\n" not in str(problem)
