"""Which files of a repository make the base model, and what their descriptions may say. Pure."""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import BadInput

CONFIG, INDEX, SINGLE = "config.json", "model.safetensors.index.json", "model.safetensors"
SHARD = re.compile(r"model-\d{5}-of-\d{5}\.safetensors")
TOKENIZER = frozenset({"tokenizer.json", "tokenizer.model", "spiece.model", "vocab.json", "vocab.txt"})
DESCRIPTIONS = frozenset({
    CONFIG, "generation_config.json", "tokenizer_config.json", "special_tokens_map.json", "added_tokens.json",
    "merges.txt", "chat_template.jinja", "chat_template.json"}) | TOKENIZER
HEX64 = re.compile(r"[0-9a-f]{64}")
MOST_FILES = 20_000
MOST_BYTES = 2**50
CAUSAL = ("ForCausalLM", "ForConditionalGeneration", "LMHeadModel")


@dataclass(frozen=True, slots=True)
class Entry:
    """One file of the repository. `sha256` (bare hex) where the hub knows it, `blob` its git id where it does not."""

    name: str
    size: int
    sha256: str | None
    blob: str | None


def entries(siblings: Any) -> dict[str, Entry]:
    """The hub's listing by name, top folder only. ValueError when it is no listing."""
    if not isinstance(siblings, list) or len(siblings) > MOST_FILES:
        raise ValueError("no list of files")
    found = [_entry(item) for item in siblings]
    return {entry.name: entry for entry in found if "/" not in entry.name}


def _entry(item: Any) -> Entry:
    name, size, lfs = item["rfilename"], item.get("size"), item.get("lfs") or {}
    size = lfs.get("size", size)
    if not isinstance(name, str) or type(size) is not int or not 0 <= size <= MOST_BYTES:
        raise ValueError("a file without name or size")
    sha256 = lfs.get("sha256")
    if sha256 is not None and not (isinstance(sha256, str) and HEX64.fullmatch(sha256)):
        raise ValueError("a file with a strange digest")
    blob = item.get("blobId")
    return Entry(name, size, sha256, blob if isinstance(blob, str) and sha256 is None else None)


def described(listing: Mapping[str, Entry], model: str) -> list[Entry]:
    """The files beside the weights. BadInput when the model could not be loaded from them."""
    if CONFIG not in listing:
        raise BadInput(f"{model} has no config.json, it is not a model that transformers loads")
    if not TOKENIZER & listing.keys():
        raise BadInput(f"{model} has no tokenizer")
    return [listing[name] for name in sorted(DESCRIPTIONS & listing.keys())]


def weights(listing: Mapping[str, Entry], shards: Sequence[str] | None, model: str) -> list[Entry]:
    """The safetensors files: the single one, or the shards that the index names. BadInput where there are none."""
    if SINGLE in listing:
        names = [SINGLE]
    elif shards is not None:
        names = [INDEX, *shards]
    else:
        raise BadInput(f"{model} has no safetensors weights; other formats can hold code and are not loaded",
                       hint="choose a model, or a revision, that has model.safetensors")
    missing = [name for name in names if name not in listing]
    if missing:
        raise BadInput(f"{model}: its index names {missing[0]}, which is not there")
    return [listing[name] for name in names]


def shards_of(index: Any, model: str) -> list[str]:
    """The files that an index names; never a path."""
    table = index.get("weight_map") if isinstance(index, dict) else None
    if not isinstance(table, dict) or not table:
        raise BadInput(f"{model}: its index of weights cannot be read")
    names = sorted({str(name) for name in table.values()})
    for name in names:
        if not SHARD.fullmatch(name):
            raise BadInput(f"{model}: its index names {ascii(name)[:80]}, which is no shard of it")
    return names


def check_config(name: str, config: Any, model: str) -> None:
    """BadInput for what would need code of the model's own, or cannot be trained as it is."""
    if not isinstance(config, dict):
        raise BadInput(f"{model}: {name} cannot be read")
    if config.get("auto_map") or config.get("trust_remote_code"):
        raise BadInput(f"{model} brings code of its own ({name}: auto_map), which is never run",
                       hint="choose a model that transformers knows")
    if name == CONFIG:
        _check_model(config, model)


def _check_model(config: Mapping[str, Any], model: str) -> None:
    if config.get("quantization_config"):
        raise BadInput(f"{model} is quantised already", hint="name the full model, and `method: qlora`")
    if not isinstance(config.get("model_type"), str):
        raise BadInput(f"{model}: config.json names no model_type")
    kinds = config.get("architectures") or []
    if kinds and not any(str(kind).endswith(CAUSAL) for kind in kinds):
        raise BadInput(f"{model} does not write text ({ascii(str(kinds[0]))[1:61]})",
                       hint="choose a causal language model")
