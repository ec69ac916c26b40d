"""The lab's base model: a Llama of 164,160 parameters with random weights, the same bytes every time.

It exists so that the real trainer can run on a laptop's CPU in seconds. It is built from numpy and
safetensors alone; its tokenizer was trained once on the lab's task and is part of the package.
"""
from __future__ import annotations

import json
from collections.abc import Iterator
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

SEED = 1
CONFIG: dict[str, Any] = {
    "architectures": ["LlamaForCausalLM"], "model_type": "llama", "vocab_size": 512, "hidden_size": 64,
    "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 4, "num_key_value_heads": 2,
    "head_dim": 16, "hidden_act": "silu", "max_position_embeddings": 512, "initializer_range": 0.05,
    "rms_norm_eps": 1e-06, "rope_theta": 10000.0, "attention_bias": False, "attention_dropout": 0.0,
    "mlp_bias": False, "tie_word_embeddings": False, "use_cache": True, "dtype": "float32",
    "pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2,
}
GENERATION = {"bos_token_id": 1, "eos_token_id": 2, "pad_token_id": 0, "do_sample": False}
TOKENIZER_FILES = ("tokenizer.json", "tokenizer_config.json")


def build(folder: Path) -> None:
    """Writes the model's five files into `folder` (made if missing); existing ones become the same bytes again."""
    from safetensors.numpy import save
    folder.mkdir(parents=True, exist_ok=True)
    _write(folder / "config.json", _json(CONFIG))
    _write(folder / "generation_config.json", _json(GENERATION))
    for name in TOKENIZER_FILES:
        _write(folder / name, resources.files("orchestrator.lab").joinpath("tiny", name).read_bytes())
    _write(folder / "model.safetensors", save(dict(weights()), metadata={"format": "pt"}))


def weights() -> Iterator[tuple[str, np.ndarray[Any, np.dtype[Any]]]]:
    """(name, float32 tensor) of every parameter, in the order of the model; norms are ones, the rest is normal."""
    import numpy as np
    chance = np.random.default_rng(SEED)
    for name, shape in shapes():
        if len(shape) == 1:
            yield name, np.ones(shape, dtype=np.float32)
        else:
            yield name, (chance.standard_normal(shape) * CONFIG["initializer_range"]).astype(np.float32)


def shapes() -> Iterator[tuple[str, tuple[int, ...]]]:
    """(name, shape) as a Llama checkpoint has them; a linear layer's shape is (out, in)."""
    hidden, inner, vocab = CONFIG["hidden_size"], CONFIG["intermediate_size"], CONFIG["vocab_size"]
    narrow = CONFIG["num_key_value_heads"] * CONFIG["head_dim"]
    yield "model.embed_tokens.weight", (vocab, hidden)
    for layer in range(CONFIG["num_hidden_layers"]):
        stem = f"model.layers.{layer}"
        yield f"{stem}.self_attn.q_proj.weight", (hidden, hidden)
        yield f"{stem}.self_attn.k_proj.weight", (narrow, hidden)
        yield f"{stem}.self_attn.v_proj.weight", (narrow, hidden)
        yield f"{stem}.self_attn.o_proj.weight", (hidden, hidden)
        yield f"{stem}.mlp.gate_proj.weight", (inner, hidden)
        yield f"{stem}.mlp.up_proj.weight", (inner, hidden)
        yield f"{stem}.mlp.down_proj.weight", (hidden, inner)
        yield f"{stem}.input_layernorm.weight", (hidden,)
        yield f"{stem}.post_attention_layernorm.weight", (hidden,)
    yield "model.norm.weight", (hidden,)
    yield "lm_head.weight", (vocab, hidden)


def _json(tree: dict[str, Any]) -> bytes:
    return (json.dumps(tree, indent=2, sort_keys=True) + "\n").encode()


def _write(path: Path, content: bytes) -> None:
    if not path.exists() or path.read_bytes() != content:
        path.write_bytes(content)
