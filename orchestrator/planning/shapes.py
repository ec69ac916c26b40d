"""The shape of a model, from its config.json: how wide, how deep, which weights. Pure.

Only what memory and speed depend on is kept. A family that is not known here is read by the usual field names and called
rough; one that is built otherwise (experts, state spaces) is refused, since a wrong figure is worse than none.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from ..errors import BadInput

FUSED = frozenset({"phi3"})                              # q, k, v in one weight, gate and up in one
BIASED = frozenset({"qwen2"})                            # q, k, v have biases, whatever the config says
TIED = frozenset({"gemma", "gemma2", "gemma3_text"})     # where the config does not say
FOUR_NORMS = frozenset({"gemma2", "gemma3_text"})
HEAD_NORMS = frozenset({"qwen3", "gemma3_text"})         # q and k are normalised head by head
PLAIN = frozenset({"llama", "mistral", "gemma", "qwen2", *FUSED, *FOUR_NORMS, *HEAD_NORMS})
OTHERWISE = ("num_experts", "num_local_experts", "n_routed_experts", "ssm_cfg", "state_size", "vision_config")
MOST = 2**31


@dataclass(frozen=True, slots=True)
class Linear:
    """One weight of a layer. Weights that read the same tensor have the same `reads`."""

    name: str
    reads: str                           # attention in | attention out | mlp in | mlp out
    inputs: int
    outputs: int
    biased: bool = False


@dataclass(frozen=True, slots=True)
class Shape:
    """`rough`: a family that is not known here, taken for one that is."""

    family: str
    vocabulary: int
    hidden: int
    inner: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    tied: bool = False
    biased: bool = False
    norms: int = 2                       # in a layer, over its whole width
    head_norms: bool = False
    fused: bool = False
    softcap: bool = False                # attention scores are capped, which only plain attention can do
    rough: bool = False

    @property
    def wide(self) -> int:
        """Width of all queries of a token."""
        return self.heads * self.head_dim

    @property
    def narrow(self) -> int:
        """Width of all keys, and of all values."""
        return self.kv_heads * self.head_dim

    def linears(self) -> tuple[Linear, ...]:
        """The weights of one layer that a method may train or quantise."""
        out = Linear("o_proj", "attention out", self.wide, self.hidden)
        down = Linear("down_proj", "mlp out", self.inner, self.hidden)
        if self.fused:
            return (Linear("qkv_proj", "attention in", self.hidden, self.wide + 2 * self.narrow), out,
                    Linear("gate_up_proj", "mlp in", self.hidden, 2 * self.inner), down)
        into = (("q_proj", self.wide), ("k_proj", self.narrow), ("v_proj", self.narrow))
        return (*(Linear(name, "attention in", self.hidden, wide, self.biased) for name, wide in into), out,
                *(Linear(name, "mlp in", self.hidden, self.inner) for name in ("gate_proj", "up_proj")), down)

    def in_layers(self) -> int:
        """Parameters of all linear weights inside the layers."""
        return self.layers * sum(w.inputs * w.outputs for w in self.linears())

    def beside(self) -> int:
        """Parameters of norms and biases."""
        heads = 2 * self.head_dim if self.head_norms else 0
        biases = sum(w.outputs for w in self.linears() if w.biased)
        return self.layers * (self.norms * self.hidden + heads + biases) + self.hidden

    def table(self) -> int:
        """Parameters of the table of tokens; the head has as many."""
        return self.vocabulary * self.hidden

    def parameters(self) -> int:
        return self.in_layers() + self.beside() + self.table() * (1 if self.tied else 2)


def shape_of(config: Mapping[str, Any], model: str = "the model") -> Shape:
    """From a parsed config.json. BadInput for what cannot be read, or is built in another way."""
    family = config.get("model_type")
    strange = next((name for name in OTHERWISE if config.get(name)), None)
    if not isinstance(family, str) or strange:
        kind = f", it is of another kind ({strange})" if strange else ""
        raise BadInput(f"{model}: what it takes cannot be worked out{kind}",
                       hint="choose a model of a plain kind, like Llama")
    heads, hidden = _count(config, model, "num_attention_heads"), _count(config, model, "hidden_size")
    shape = Shape(
        family, _count(config, model, "vocab_size"), hidden, _count(config, model, "intermediate_size", 4 * hidden),
        _count(config, model, "num_hidden_layers"), heads, _count(config, model, "num_key_value_heads", heads),
        _count(config, model, "head_dim", max(1, hidden // heads)), bool(config.get("tie_word_embeddings", family in TIED)),
        family in BIASED or bool(config.get("attention_bias")), softcap=bool(config.get("attn_logit_softcapping")),
        rough=family not in PLAIN)
    return replace(shape, norms=4 if family in FOUR_NORMS else 2, head_norms=family in HEAD_NORMS, fused=family in FUSED)


def _count(config: Mapping[str, Any], model: str, name: str, otherwise: int | None = None) -> int:
    value = config.get(name)
    if value is None and otherwise is not None:
        return otherwise
    if type(value) is not int or not 0 < value < MOST:
        raise BadInput(f"{model}: config.json has no usable {name}", hint="check the spelling of `model:`")
    return value
