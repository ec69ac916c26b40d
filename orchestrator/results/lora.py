"""Is this the adapter that was asked for? Names, shapes, ranks and values against the run's own spec; and its config.

Follows peft's format: pairs lora_A (r, in) and lora_B (out, r), whole modules only where the run named them.
The configuration is written from the spec and from names that passed; nothing in it is the node's word.
"""
from __future__ import annotations

import re
from collections.abc import Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

from ..domain.training import TrainingSpec
from .safetensors import Tensor, Unfit, is_finite, is_zero

PART = r"[A-Za-z_][A-Za-z0-9_]*"
MODULE = rf"{PART}(?:\.(?:{PART}|\d{{1,4}}))*"
PAIR = re.compile(rf"base_model\.model\.(?P<module>{MODULE})\.lora_(?P<half>[AB])\.weight")
SAVED = re.compile(rf"base_model\.model\.(?P<module>{MODULE})\.(?:weight|bias)")
MOST_NAME = 256
DEFAULTS = {"lora_r": "16", "lora_alpha": "32", "lora_dropout": "0.05", "target_modules": "all-linear",
            "modules_to_save": ""}


class Knobs:
    """What the spec says about the adapter's shape, with the trainer's defaults for what it does not say."""

    def __init__(self, spec: TrainingSpec) -> None:
        knobs = {**DEFAULTS, **dict(spec.knobs)}
        self.rank, self.alpha = int(knobs["lora_r"]), int(knobs["lora_alpha"])
        self.dropout = _decimal(knobs["lora_dropout"])
        self.targets, self.saved = _words(knobs["target_modules"]), _words(knobs["modules_to_save"])

    def is_target(self, module: str) -> bool:
        return self.targets == ("all-linear",) or _named(module, self.targets)

    def is_saved(self, module: str) -> bool:
        return _named(module, self.saved)


def _words(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _decimal(text: str) -> Decimal:
    try:
        return Decimal(text)
    except InvalidOperation:
        raise ValueError(f"not a decimal: {text!r}") from None


def _named(module: str, names: tuple[str, ...]) -> bool:
    return any(module == name or module.endswith(f".{name}") for name in names)


def check_tensors(tensors: Mapping[str, Tensor], knobs: Knobs) -> bool:
    """Unfit names the first tensor that is not as expected. True when it was trained: some lora_B is not zero."""
    halves: dict[str, dict[str, Tensor]] = {}
    for name, tensor in tensors.items():
        found = PAIR.fullmatch(name) if len(name) <= MOST_NAME else None
        if found and knobs.is_target(found["module"]):
            halves.setdefault(found["module"], {})[found["half"]] = tensor
        elif not _is_saved(name, knobs):
            raise Unfit(f"{ascii(name)[:100]} was not asked for")
        if not is_finite(tensor):
            raise Unfit(f"{name} holds values that are not numbers")
    if not halves:
        raise Unfit("no adapter tensor in it")
    for module, pair in halves.items():
        _check_pair(module, pair, knobs.rank)
    return any(not is_zero(pair["B"]) for pair in halves.values())


def _is_saved(name: str, knobs: Knobs) -> bool:
    found = SAVED.fullmatch(name) if len(name) <= MOST_NAME else None
    return bool(found and knobs.is_saved(found["module"]))


def _check_pair(module: str, pair: Mapping[str, Tensor], rank: int) -> None:
    if pair.keys() != {"A", "B"}:
        raise Unfit(f"{module} has only one half of its adapter")
    a, b = pair["A"], pair["B"]
    if len(a.shape) != 2 or len(b.shape) != 2 or a.shape[0] != rank or b.shape[1] != rank:
        raise Unfit(f"{module} is not of rank {rank}: {list(a.shape)}, {list(b.shape)}")


def config(spec: TrainingSpec, knobs: Knobs, tensors: Mapping[str, Tensor]) -> dict[str, Any]:
    """adapter_config.json for peft. The modules are those that the run named; for all-linear, those that came."""
    came = {found["module"].rsplit(".", 1)[-1] for name in tensors if (found := PAIR.fullmatch(name))}
    return {
        "auto_mapping": None, "base_model_name_or_path": spec.base.repo, "bias": "none", "fan_in_fan_out": False,
        "inference_mode": True, "init_lora_weights": True, "lora_alpha": knobs.alpha,
        "lora_dropout": float(knobs.dropout), "modules_to_save": list(knobs.saved) or None, "peft_type": "LORA",
        "r": knobs.rank, "revision": spec.base.commit,
        "target_modules": sorted(came) if knobs.targets == ("all-linear",) else list(knobs.targets),
        "task_type": "CAUSAL_LM", "use_dora": False, "use_rslora": False,
    }
