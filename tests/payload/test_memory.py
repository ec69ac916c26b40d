"""The plan's memory estimate against torch's own memory profiler, on models that this machine's CPU can train.

Every case is a real training: random weights in the family's own code, loaded as the node loads them, two steps of the
node's trainer. The estimate excludes what only a GPU has (context, fragments). `full`: all of them; by default the three
that differ most.
"""
from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestrator.planning.memory import Setting, need, trained
from orchestrator.planning.shapes import Shape, shape_of

pytestmark = pytest.mark.training
INSIDE = Path(__file__).with_name("inside_memory.py")
REPOSITORY = INSIDE.parents[2]
WITHIN = 0.10
Tree = dict[str, Any]


def config(family: str, vocabulary: int, hidden: int, inner: int, layers: int, heads: int, kv: int, **more: Any) -> Tree:
    return {"model_type": family, "vocab_size": vocabulary, "hidden_size": hidden, "intermediate_size": inner,
            "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv,
            "head_dim": hidden // heads, "max_position_embeddings": 2048, "pad_token_id": 0, "bos_token_id": 1,
            "eos_token_id": 1, "tie_word_embeddings": False, **more}


TINY = config("llama", 512, 64, 192, 2, 4, 2)
SMALL = config("llama", 2000, 256, 704, 8, 8, 4)
MIDDLE = config("llama", 8000, 512, 1408, 8, 8, 4)       # 32 million parameters
LARGE = config("llama", 32000, 768, 2048, 8, 12, 4)      # 102 million
QWEN = config("qwen2", 12000, 320, 1024, 6, 10, 2, tie_word_embeddings=True)
GEMMA = config("gemma2", 4000, 256, 768, 4, 4, 2, tie_word_embeddings=True, attn_logit_softcapping=50.0, head_dim=64,
               final_logit_softcapping=30.0, query_pre_attn_scalar=64)
PHI = config("phi3", 3000, 256, 768, 4, 4, 4)


def case(model: Tree, batch: int, length: int, method: str = "lora", *, again: bool = False, **knobs: str) -> Tree:
    return {"config": model, "method": method, "checkpointing": again,
            "knobs": {"per_device_train_batch_size": str(batch), "max_length": str(length), **knobs}}


CASES = {
    "the lab's own, as its demo trains it": case(TINY, 16, 64, modules_to_save="lm_head,embed_tokens", lora_dropout="0"),
    "small": case(SMALL, 8, 128),
    "small, checkpointed": case(SMALL, 4, 256, again=True),
    "small, no dropout": case(SMALL, 4, 256, lora_dropout="0"),
    "small, two targets": case(SMALL, 4, 128, target_modules="q_proj,v_proj"),
    "small, rank 128": case(SMALL, 4, 128, lora_r="128"),
    "small, four bits": case(SMALL, 8, 128, "qlora"),
    "small, all weights": case(SMALL, 4, 128, "full", again=True),
    "middle, all weights": case(MIDDLE, 1, 64, "full"),
    "middle, four bits, checkpointed": case(MIDDLE, 2, 512, "qlora", again=True),
    "mistral": case({**SMALL, "model_type": "mistral"}, 4, 256),
    "qwen, tied": case(QWEN, 4, 128),
    "qwen 3": case({**QWEN, "model_type": "qwen3"}, 4, 128, "qlora"),
    "gemma 2": case(GEMMA, 4, 192),
    "phi 3, fused weights": case(PHI, 4, 128),
    "large, four bits": case(LARGE, 2, 128, "qlora"),
    "large, checkpointed": case(LARGE, 4, 128, again=True),
    "large, all weights": case(LARGE, 1, 32, "full", again=True),
}
FIRST = ("the lab's own, as its demo trains it", "small, four bits", "gemma 2")


def estimate_of(case: Tree) -> tuple[Shape, Setting]:
    knobs, shape = case["knobs"], shape_of(case["config"])
    return shape, Setting(
        case["method"], int(knobs.get("lora_r", 16)), tuple(knobs.get("target_modules", "all-linear").split(",")),
        tuple(filter(None, knobs.get("modules_to_save", "").split(","))), knobs.get("lora_dropout") != "0",
        int(knobs["per_device_train_batch_size"]), int(knobs["max_length"]), checkpointing=case["checkpointing"],
        attention="eager" if shape.softcap else "sdpa", cpu=True)


@pytest.mark.parametrize("names", [FIRST, pytest.param(tuple(CASES), marks=pytest.mark.full)], ids=["few", "all"])
def test_peaks_are_as_the_plan_says(names: tuple[str, ...], trainer_python: Path) -> None:
    off = []
    for name, seen in zip(names, measured([CASES[name] for name in names], trainer_python), strict=True):
        shape, setting = estimate_of(CASES[name])
        said = need(shape, setting)
        error = said.expected / seen["peak"] - 1
        print(f"{name:40} {shape.parameters() / 1e6:7.2f} M  measured {seen['peak'] / 1e6:8.1f} MB  "
              f"said {said.expected / 1e6:8.1f} MB  {error:+.1%}")
        assert trained(shape, setting) == seen["trained"], name
        if abs(error) > WITHIN:
            off.append((name, error))
    assert not off


def measured(cases: list[Tree], python: Path) -> list[dict[str, int]]:
    done = subprocess.run([str(python), str(INSIDE), str(REPOSITORY)], input=json.dumps(cases), text=True, check=False,
                          capture_output=True, timeout=600,
                          env={"PATH": os.defpath, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"})
    assert done.returncode == 0, done.stderr[-2000:]
    seen: list[dict[str, int]] = json.loads(done.stdout.splitlines()[-1])
    return seen
