"""`sealtune plan`, typed: offline, for the models that the guides name; its JSON has every key, its offers can be kept."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.app import app
from orchestrator.cli.offersfile import read_offers, save_offers
from orchestrator.cli.shapes import SHAPES
from orchestrator.domain.lease import HardwareClaim, Offer
from orchestrator.domain.money import POL, USDC, Money, Rate
from orchestrator.errors import BadInput
from orchestrator.lab import model as lab
from orchestrator.lab import task
from tests.fakes.shapes import misfits

Out = pytest.CaptureFixture[str]


def offer(name: str, gpu: str, mib: int, cents: int, **more: Any) -> Offer:
    return Offer("open", name, Rate(Money(cents * 10_000, USDC)), HardwareClaim(gpu, 1, mib, 65_536, 200), 86_400, 100,
                 Money(10**16, POL), 980, **more)


OFFERS = [offer("cheap", "NVIDIA GeForce RTX 4090", 24564, 45), offer("large", "NVIDIA RTX 6000 Ada Generation", 49140, 80),
          offer("tiny", "NVIDIA GeForce RTX 3060", 12288, 10)]


@pytest.fixture
def saved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("SEALTUNE_HOME", str(tmp_path / "state"))
    save_offers(tmp_path / "offers.json", OFFERS)
    return tmp_path / "offers.json"


def plan(capsys: Out, *words: str) -> dict[str, Any]:
    app(["plan", *words, "--json"], standalone_mode=False)
    tree: dict[str, Any] = json.loads(capsys.readouterr().out)
    return tree


def run_file(folder: Path, **fields: str) -> Path:
    task.write(folder / "visits.jsonl", rows=60)
    words = {"model": "meta-llama/Llama-3.1-8B", "dataset": "visits.jsonl", "budget": '"8.00 USDC"', **fields}
    path = folder / "visits.yaml"
    path.write_text("".join(f"{name}: {word}\n" for name, word in words.items()))
    return path


@pytest.mark.parametrize("model", ["meta-llama/Llama-3.1-8B", "mistralai/Mistral-7B-v0.3", "Qwen/Qwen2-7B",
                                   "google/gemma-2-9b"])
def test_the_guides_models_fit_24_gb_in_four_bits(model: str, saved: Path, capsys: Out) -> None:
    tree = plan(capsys, "--model", model, "--batch", "4", "--offers", str(saved))
    verdicts = {one["offer"]: (one["verdict"], one["refused"]) for one in tree["offers"]}
    assert verdicts["cheap"] == ("fits", None) and tree["memory"]["high"] < 24 * 2**30


def test_70b_in_four_bits_takes_the_48_gb_card_and_is_refused_by_the_others(saved: Path, capsys: Out) -> None:
    tree = plan(capsys, "--model", "llama-3.1-70b", "--batch", "1", "--offers", str(saved))
    by_name = {one["offer"]: one for one in tree["offers"]}
    assert by_name["large"]["verdict"] == "fits" and by_name["large"]["best"]
    assert all("the training takes at least" in by_name[name]["refused"] for name in ("cheap", "tiny"))


def test_on_20_gb_the_largest_comes_out_in_figures_and_70b_does_not_fit(saved: Path, capsys: Out) -> None:
    tree = plan(capsys, "--model", "llama-3.1-70b", "--card", "20", "--offers", str(saved))
    assert tree["card"]["verdict"] == "does not fit" and tree["remedies"] == [] and "a card like" in tree["advice"]
    assert tree["card"]["largest"]["model"] == "google/gemma-2-27b"
    assert tree["card"]["largest"]["length"] >= 1024 and tree["card"]["largest"]["batch"] >= 2


def test_every_key_is_there_whatever_is_known(saved: Path, tmp_path: Path, capsys: Out) -> None:
    for words in ([str(run_file(tmp_path))], ["--model", "llama-3.1-8b"]):
        tree = plan(capsys, *words, "--offers", str(saved))
        assert misfits(SHAPES["plan"], tree) == []
        assert tree["offers"] and tree["elsewhere"] and tree["cards"]
    assert tree["confirm"] is None


def test_a_run_file_is_planned_with_its_data_and_what_run_would_confirm(saved: Path, tmp_path: Path, capsys: Out) -> None:
    tree = plan(capsys, str(run_file(tmp_path)), "--offers", str(saved))
    assert tree["data"]["train"] + tree["data"]["held_out"] == 60 and tree["data"]["row_tokens"] < 100
    assert misfits(SHAPES["plan"], tree) == [] and tree["confirm"]["offer"] == "tiny"
    assert int(tree["confirm"]["worst_case"]) <= 8_000_000 and tree["confirm"]["refused"] is None


def test_what_run_would_refuse_is_said_with_what_would_do(saved: Path, tmp_path: Path, capsys: Out) -> None:
    large = run_file(tmp_path, model="meta-llama/Llama-3.1-70B", method="lora")
    tree = plan(capsys, str(large), "--offers", str(saved))
    assert misfits(SHAPES["plan"], tree) == []
    assert "the training takes at least" in tree["confirm"]["refused"] and "method: qlora" in tree["confirm"]["hint"]


def test_a_model_is_read_from_its_own_config(saved: Path, tmp_path: Path, capsys: Out) -> None:
    (tmp_path / "config.json").write_text(json.dumps(lab.CONFIG))
    tree = plan(capsys, "--config", str(tmp_path / "config.json"), "--offers", str(saved))
    assert tree["model"]["parameters"] == 164_160


def test_for_people_it_is_the_same(saved: Path, tmp_path: Path, capsys: Out) -> None:
    app(["plan", str(run_file(tmp_path, method="lora")), "--offers", str(saved), "--card", "12"], standalone_mode=False)
    told = capsys.readouterr().out
    for line in ("model      meta-llama/Llama-3.1-8B, 8.03 billion parameters", "memory     about ",
                 "card       12.0 GiB: does not fit", "fits with method: qlora, per_device", "offer      * cheap",
                 "elsewhere  AWS g5 (A10G)", "run        would confirm cheap"):
        assert line in told, told
    assert "refused: 12288 MiB of GPU memory" in told


def test_all_weights_are_an_estimate_only_and_said_so(saved: Path, capsys: Out) -> None:
    app(["plan", "--model", "llama-3.1-8b", "--method", "full", "--offers", str(saved)], standalone_mode=False)
    assert "all weights (which `run` does not train yet)" in capsys.readouterr().out


@pytest.mark.parametrize(("words", "told"), [
    ([], "nothing to plan"), (["--model", "llama-3.1-9b"], "is not known here"),
    (["--card", "Voodoo", "--model", "qwen2-7b"], "Voodoo"),
    (["--model", "qwen2-7b", "--method", "prefix"], "prefix"), (["--config", "nowhere.json"], "cannot be read"),
    (["--model", "qwen2-7b", "--offers", "nowhere.json"], "no such file"),
])
def test_what_cannot_be_planned_is_told(words: list[str], told: str, saved: Path) -> None:
    with pytest.raises(BadInput, match=told):
        app(["plan", *words, *([] if "--offers" in words else ["--offers", str(saved)])], standalone_mode=False)


@pytest.mark.parametrize("text", [
    "", "[]", "{}", '{"schema": "sealtune/offers/2", "offers": []}', '{"schema": "sealtune/offers/1", "offers": [{}]}',
    '{"schema": "sealtune/offers/1", "offers": 7}'])
def test_a_file_that_holds_no_offers(tmp_path: Path, text: str) -> None:
    (tmp_path / "x.json").write_text(text)
    with pytest.raises(BadInput, match=r"x\.json holds no offers"):
        read_offers(tmp_path / "x.json")


def test_offers_come_back_as_they_were(saved: Path) -> None:
    assert read_offers(saved) == OFFERS
