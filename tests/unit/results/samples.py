"""A spec, an adapter and an evaluation as an honest node would send them; tests spoil one thing at a time."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
from safetensors.numpy import save

from orchestrator.domain.names import Digest
from orchestrator.domain.training import BaseModel, CheckpointRule, Limits, TrainingSpec
from orchestrator.errors import Transient

STEM = "base_model.model.model.layers.0.self_attn.q_proj"
HEAD = "base_model.model.lm_head.weight"
RANK = 4
Arrays = dict[str, np.ndarray[Any, Any]]


def spec(**knobs: str) -> TrainingSpec:
    given = {"lora_r": str(RANK), "lora_alpha": "8", "lora_dropout": "0.10", **knobs}
    return TrainingSpec(
        "sealtune/spec/1", "ab" * 32 + "/train", "trl", "lora", BaseModel("http://hub", "lab/tiny", "c0" * 20, ()),
        tuple(sorted(given.items())), 1, Digest("sha256:" + "0" * 64), 90, 10, None, "age1x", CheckpointRule(60, 2),
        Limits(100, 100, 10_000_000, 1000))


def arrays(dtype: str = "float32") -> Arrays:
    chance = np.random.default_rng(1)
    return {f"{STEM}.lora_A.weight": chance.normal(size=(RANK, 16)).astype(dtype),
            f"{STEM}.lora_B.weight": chance.normal(size=(16, RANK)).astype(dtype)}


def packed(tensors: Arrays) -> bytes:
    return bytes(save(tensors, metadata={"format": "pt", "note": "\x1b[31m"}))


def evaluation(**changes: Any) -> bytes:
    side = {"exact_match": "0.500000", "loss": "1.250000", "perplexity": "3.490343", "n": "10"}
    return json.dumps({"schema": "sealtune/evaluation/1", "base": side,
                       "adapter": {**side, "exact_match": "1.000000", "loss": "0.010000"},
                       "rows": [{"prompt": "a\x1b]52;", "expected": "b\u202e", "base": "c", "adapter": "b"}],
                       **changes}).encode()


def plain_opener(path: Path, identity: bytes, most: int) -> bytes:
    """Stands in for the sealing room: a file of up to `most` bytes, "sealed" to the identity in its first line."""
    data = path.read_bytes()
    key, _, body = data.partition(b"\n")
    if key != identity or len(body) > most:
        raise Transient(f"{path.name} does not open")
    return body


def sealed(home: Path, weights: bytes, compared: bytes, key: bytes = b"key") -> None:
    home.mkdir(exist_ok=True)
    (home / "adapter.age").write_bytes(key + b"\n" + weights)
    (home / "evaluation.age").write_bytes(key + b"\n" + compared)
