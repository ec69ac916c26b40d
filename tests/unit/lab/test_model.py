"""The lab's base model and task: the same every time, as large as said, and no visit twice."""
from __future__ import annotations

import hashlib
import json
import math
from pathlib import Path

import numpy
from safetensors.numpy import load_file

from orchestrator.lab import model, task


def test_the_model_is_the_same_bytes_every_time(tmp_path: Path) -> None:
    model.build(tmp_path / "one")
    model.build(tmp_path / "two")
    names = sorted(path.name for path in (tmp_path / "one").iterdir())
    assert names == ["config.json", "generation_config.json", "model.safetensors", "tokenizer.json",
                     "tokenizer_config.json"]
    for name in names:
        assert (tmp_path / "one" / name).read_bytes() == (tmp_path / "two" / name).read_bytes()


def test_building_again_changes_and_mends(tmp_path: Path) -> None:
    model.build(tmp_path)
    before = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()}
    (tmp_path / "config.json").write_text("{}")
    model.build(tmp_path)
    after = {path.name: (path.stat().st_mtime_ns, path.read_bytes()) for path in tmp_path.iterdir()}
    assert after["config.json"][1] == before["config.json"][1]
    assert after["model.safetensors"] == before["model.safetensors"], "what is right is not written again"


def test_it_is_a_llama_of_164160_parameters(tmp_path: Path) -> None:
    model.build(tmp_path)
    tensors = load_file(tmp_path / "model.safetensors")
    assert sum(math.prod(tensor.shape) for tensor in tensors.values()) == 164_160
    assert all(tensor.dtype == numpy.float32 and numpy.isfinite(tensor).all() for tensor in tensors.values())
    config = json.loads((tmp_path / "config.json").read_text())
    assert tensors["model.embed_tokens.weight"].shape == (config["vocab_size"], config["hidden_size"])


def test_its_tokenizer_fits_it_and_marks_the_answers(tmp_path: Path) -> None:
    model.build(tmp_path)
    tokenizer = json.loads((tmp_path / "tokenizer.json").read_text())
    assert len(tokenizer["model"]["vocab"]) == model.CONFIG["vocab_size"]
    special = {token["content"]: token["id"] for token in tokenizer["added_tokens"]}
    assert (special["<|pad|>"], special["<|bos|>"], special["<|end|>"]) == (0, 1, 2)
    assert "{% generation %}" in json.loads((tmp_path / "tokenizer_config.json").read_text())["chat_template"]


def test_no_two_visits_are_alike_and_every_code_occurs(tmp_path: Path) -> None:
    task.write(tmp_path / "task.jsonl")
    rows = [json.loads(line)["messages"] for line in (tmp_path / "task.jsonl").read_text().splitlines()]
    assert len(rows) == 900 == len({row[0]["content"] for row in rows})
    assert [turn["role"] for turn in rows[0]] == ["user", "assistant"]
    held_out, trained = rows[810:], rows[:810]
    codes = {row[1]["content"] for row in trained}
    assert len(codes) == 64 and {row[1]["content"] for row in held_out} <= codes


def test_the_seed_decides(tmp_path: Path) -> None:
    def digest(seed: int) -> str:
        task.write(tmp_path / "t", rows=50, seed=seed)
        return hashlib.sha256((tmp_path / "t").read_bytes()).hexdigest()
    assert digest(1) == digest(1) != digest(2)
