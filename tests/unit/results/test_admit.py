"""The Results port: what is kept, what is refused, and that a crash or a folder in the way loses nothing."""
from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors import safe_open

from orchestrator import ports
from orchestrator.domain.document import encode
from orchestrator.domain.names import RunId
from orchestrator.domain.spool import Figures
from orchestrator.errors import BadInput, StopRun, Transient
from orchestrator.results import Results, check_output, evaluation_of
from tests.unit.results.samples import HEAD, STEM, arrays, evaluation, packed, plain_opener, sealed, spec

RUN = RunId("r1")


@pytest.fixture
def output(tmp_path: Path) -> Path:
    return tmp_path / "adapters" / "mine"


@pytest.fixture
def results(output: Path) -> ports.Results:
    return Results(output, RUN, plain_opener)


def test_an_adapter_is_admitted(results: ports.Results, output: Path, tmp_path: Path) -> None:
    sealed(tmp_path / "h", packed(arrays()), evaluation())
    adapter = results.admit(tmp_path / "h", spec(), b"key")
    assert (adapter.base, adapter.adapter) == (Figures("0.500000", "1.250000"), Figures("1.000000", "0.010000"))
    assert (adapter.held_out, adapter.tensors, adapter.warnings) == (10, 2, ()) and adapter.folder == str(output)
    weights = output / "adapter_model.safetensors"
    assert adapter.sha256 == "sha256:" + hashlib.sha256(weights.read_bytes()).hexdigest()
    assert {p.name for p in output.iterdir()} == {"adapter_model.safetensors", "adapter_config.json",
                                                  "README.md", ".sealtune-run"}
    assert all(p.stat().st_mode & 0o777 == 0o600 for p in output.iterdir())
    with safe_open(weights, "np") as file:
        assert file.metadata() == {"format": "pt"}
        for name, array in arrays().items():
            assert np.array_equal(file.get_tensor(name), array)
    assert "adapters" not in str(encode(adapter)[0])


def test_the_config_is_ours(results: ports.Results, output: Path, tmp_path: Path) -> None:
    sealed(tmp_path / "h", packed(arrays()), evaluation())
    (tmp_path / "h" / "adapter_config.json").write_text('{"auto_mapping": {"parent_library": "evil"}}')
    results.admit(tmp_path / "h", spec(), b"key")
    config = json.loads((output / "adapter_config.json").read_text())
    assert config["base_model_name_or_path"] == "lab/tiny" and config["revision"] == "c0" * 20
    assert (config["r"], config["lora_alpha"], config["lora_dropout"]) == (4, 8, 0.1)
    assert config["target_modules"] == ["q_proj"] and config["modules_to_save"] is None
    assert config["auto_mapping"] is None and config["peft_type"] == "LORA" and config["task_type"] == "CAUSAL_LM"


def test_answers_cannot_act_on_a_terminal(results: ports.Results, output: Path, tmp_path: Path) -> None:
    sealed(tmp_path / "h", packed(arrays()), evaluation())
    results.admit(tmp_path / "h", spec(), b"key")
    kept = evaluation_of(output).read_bytes()
    assert json.loads(kept)["rows"][0]["prompt"] == "a\x1b]52;"
    assert all(32 <= byte < 127 or byte == 10 for byte in kept)


def test_whole_modules_where_the_run_named_them(results: ports.Results, output: Path, tmp_path: Path) -> None:
    head = {HEAD: np.ones((32, 16), "float32"),
            "base_model.model.model.embed_tokens.weight": np.ones((32, 16), "float32")}
    sealed(tmp_path / "h", packed({**arrays(), **head}), evaluation())
    results.admit(tmp_path / "h", spec(modules_to_save="lm_head,embed_tokens"), b"key")
    assert json.loads((output / "adapter_config.json").read_text())["modules_to_save"] == ["lm_head", "embed_tokens"]


@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_an_untrained_adapter_is_said_to_be_one(results: ports.Results, tmp_path: Path, dtype: str) -> None:
    tensors = arrays(dtype)
    tensors[f"{STEM}.lora_B.weight"] = np.full((16, 4), -0.0, dtype)
    sealed(tmp_path / "h", packed(tensors), evaluation())
    assert "untrained" in results.admit(tmp_path / "h", spec(), b"key").warnings[0]


def test_text_rows_have_no_exact_match(results: ports.Results, tmp_path: Path) -> None:
    side = {"exact_match": "", "loss": "nan", "perplexity": "", "n": "10"}
    sealed(tmp_path / "h", packed(arrays()), evaluation(rows=[], base=side, adapter=side))
    assert results.admit(tmp_path / "h", spec(), b"key").base == Figures("", "")


def spoiled(**changes: Any) -> bytes:
    tensors = arrays()
    for name, value in changes.items():
        tensors[f"{STEM}.{name}.weight"] = value
    return packed(tensors)


ONES = np.ones((4, 16), "float32")


@pytest.mark.parametrize(("weights", "told"), [
    (packed({**arrays(), "../../x": ONES}), "was not asked for"),
    (packed({**arrays(), f"{STEM}\x1b[2J.lora_A.weight": ONES}), "was not asked for"),
    (packed({**arrays(), HEAD: ONES}), "'base_model.model.lm_head.weight' was not asked for"),
    (packed({**arrays(), "base_model.model.a.lora_A.weight": ONES}), "a has only one half of its adapter"),
    (packed({HEAD.replace("lm_head", "norm"): ONES}), "was not asked for"),
    (packed({name.replace(".weight", ".default.weight"): a for name, a in arrays().items()}), "was not asked for"),
    (packed({f"{STEM}{'.x' * 200}.lora_A.weight": ONES}), "was not asked for"),
    (spoiled(lora_A=np.full((4, 16), np.nan, "float32")), "holds values that are not numbers"),
    (spoiled(lora_B=np.full((16, 4), np.inf, "float16")), "holds values that are not numbers"),
    (spoiled(lora_A=np.ones((8, 16), "float32")), "is not of rank 4: [8, 16], [16, 4]"),
    (spoiled(lora_A=np.ones((4, 4, 4), "float32")), "is not of rank 4"),
    (spoiled(lora_A=np.ones((4, 16), "int8")), "is of type 'I8'"),
    (packed(arrays())[:-1], "does not lie where its shape says"),
    (packed(arrays()) + b"x", "1 bytes after the last tensor"),
    (b"PK\x03\x04 a pickle in a zip", "a header of"),
    (b"", "shorter than a header"),
])
def test_other_tensors_end_the_run(results: ports.Results, output: Path, tmp_path: Path, weights: bytes,
                                   told: str) -> None:
    sealed(tmp_path / "h", weights, evaluation())
    with pytest.raises(StopRun) as caught:
        results.admit(tmp_path / "h", spec(), b"key")
    assert told in str(caught.value) and str(caught.value).isprintable()
    assert not output.exists() and not list(output.parent.glob("*"))


def test_only_the_modules_that_the_run_named(results: ports.Results, tmp_path: Path) -> None:
    sealed(tmp_path / "h", packed(arrays()), evaluation())
    with pytest.raises(StopRun, match="was not asked for"):
        results.admit(tmp_path / "h", spec(target_modules="v_proj,k_proj"), b"key")


@pytest.mark.parametrize("compared", [
    b"[]", b"{", b"\xff", evaluation(schema="x"), evaluation(more=1), evaluation(rows=[{}]),
    evaluation(rows=[{"prompt": 1, "expected": "", "base": "", "adapter": ""}]), evaluation(rows="x"),
    evaluation(base={"exact_match": "2", "loss": "", "perplexity": "", "n": "1"}),
    evaluation(base={"exact_match": 1, "loss": "", "perplexity": "", "n": "1"}),
    evaluation(base={"exact_match": "1e5", "loss": "", "perplexity": "", "n": "1"}),
    evaluation(rows=[{"prompt": "", "expected": "", "base": "", "adapter": ""}] * 65),
    b'{"base": 1.5}',
])
def test_another_evaluation_ends_the_run(results: ports.Results, tmp_path: Path, compared: bytes) -> None:
    sealed(tmp_path / "h", packed(arrays()), compared)
    with pytest.raises(StopRun, match="an evaluation"):
        results.admit(tmp_path / "h", spec(), b"key")


def test_what_does_not_open_is_fetched_again_once(results: ports.Results, tmp_path: Path) -> None:
    home = tmp_path / "h"
    home.mkdir()
    with pytest.raises(Transient, match=r"adapter\.age is not at home yet"):
        results.admit(home, spec(), b"key")
    sealed(home, packed(arrays()), evaluation(), key=b"another")
    with pytest.raises(Transient, match="does not open"):
        results.admit(home, spec(), b"key")
    assert not (home / "adapter.age").exists()
    sealed(home, packed(arrays()), evaluation())
    assert results.admit(home, spec(), b"key").tensors == 2
    sealed(home, packed(arrays()), evaluation(), key=b"another")
    with pytest.raises(StopRun, match="cannot be opened"):
        results.admit(home, spec(), b"key")


def test_again_gives_the_same(results: ports.Results, output: Path, tmp_path: Path) -> None:
    sealed(tmp_path / "h", packed(arrays()), evaluation())
    first = results.admit(tmp_path / "h", spec(), b"key")
    assert results.admit(tmp_path / "h", spec(), b"key") == first
    assert sorted(p.name for p in output.parent.iterdir()) == ["mine", "mine.evaluation.json"]


def test_a_folder_in_the_way_is_left_alone(results: ports.Results, output: Path, tmp_path: Path) -> None:
    sealed(tmp_path / "h", packed(arrays()), evaluation())
    output.mkdir(parents=True)
    (output / "theirs").write_text("precious")
    with pytest.raises(BadInput, match="is there already and not of this run"):
        check_output(output, RUN)
    assert Path(results.admit(tmp_path / "h", spec(), b"key").folder) == output.with_name("mine-r1")
    assert (output / "theirs").read_text() == "precious" and len(list(output.iterdir())) == 1


def test_where_an_output_can_go(output: Path, tmp_path: Path) -> None:
    check_output(output)
    assert not output.parent.exists()
    output.mkdir(parents=True)
    check_output(output)
    (output / ".sealtune-run").write_text("r1\n")
    check_output(output, RUN)
    for run in (None, RunId("r2")):
        with pytest.raises(BadInput):
            check_output(output, run)
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(BadInput):
            check_output(path)


SECRET = "Ms Okonkwo, ward 7"


def test_what_may_be_handed_on_shows_no_row(results: ports.Results, output: Path, tmp_path: Path) -> None:
    """The folder is what people upload: weights, configuration, model card. Rows lie beside it, for the owner only."""
    rows = [{"prompt": SECRET, "expected": SECRET, "base": SECRET, "adapter": SECRET}]
    sealed(tmp_path / "h", packed(arrays()), evaluation(rows=rows))
    results.admit(tmp_path / "h", spec(), b"key")
    assert all(SECRET.encode() not in file.read_bytes() for file in output.iterdir())
    beside = output.parent / "mine.evaluation.json"
    assert json.loads(beside.read_bytes())["rows"] == rows and beside.stat().st_mode & 0o777 == 0o600


def test_the_card_says_what_is_known(results: ports.Results, output: Path, tmp_path: Path) -> None:
    sealed(tmp_path / "h", packed(arrays()), evaluation())
    results.admit(tmp_path / "h", spec(target_modules="q_proj"), b"key")
    card = (output / "README.md").read_text()
    head = card.split("---\n")[1]
    assert 'base_model: "lab/tiny"\n' in head and "library_name: peft" in head and "licen" not in head
    for said in ("c0" * 20, "rank 4, alpha 8, dropout 0.10", "| exact match | 0.500000 | 1.000000 |",
                 "On 10 rows that were kept out", "| loss | 1.250000 | 0.010000 |", "can leak what it was trained on",
                 "`q_proj`", "nobody measured"):
        assert said in card
    assert not any(word in card for word in (str(tmp_path), RUN, "not trained", "{", "not measured"))


def test_the_card_of_what_was_not_measured_or_not_trained(results: ports.Results, output: Path, tmp_path: Path) -> None:
    side = {"exact_match": "", "loss": "nan", "perplexity": "", "n": "10"}
    tensors = arrays()
    tensors[f"{STEM}.lora_B.weight"] = np.zeros((16, 4), "float32")
    sealed(tmp_path / "h", packed(tensors), evaluation(rows=[], base=side, adapter=side))
    results.admit(tmp_path / "h", spec(), b"key")
    card = (output / "README.md").read_text()
    assert "Nothing was measured." in card and "It was not trained" in card and "exact match" not in card


def test_an_evaluation_of_another_run_is_left_alone(results: ports.Results, output: Path, tmp_path: Path) -> None:
    """Its adapter was moved away, its answers stayed: they are not written over."""
    sealed(tmp_path / "h", packed(arrays()), evaluation())
    output.parent.mkdir()
    evaluation_of(output).write_text("precious")
    with pytest.raises(BadInput, match=r"mine\.evaluation\.json is there already"):
        check_output(output)
    place = Path(results.admit(tmp_path / "h", spec(), b"key").folder)
    assert place == output.with_name("mine-r1") and evaluation_of(place).is_file()
    assert evaluation_of(output).read_text() == "precious" and not output.exists()


def test_cut_off_between_folder_and_evaluation(results: ports.Results, output: Path, tmp_path: Path) -> None:
    """The next attempt finds its own folder, and puts both there."""
    sealed(tmp_path / "h", packed(arrays()), evaluation())
    results.admit(tmp_path / "h", spec(), b"key")
    evaluation_of(output).unlink()
    assert results.admit(tmp_path / "h", spec(), b"key").folder == str(output) and evaluation_of(output).is_file()
