"""The base model and its adapter: files checked, loaded from a folder only, adapter as bytes and never as a file.

No code of a model is run (no remote code, no pickles, no kernels from a hub), and nothing is fetched. On a CPU
everything is float32; on a GPU bfloat16, with the base in 4 bits for qlora.
"""
from __future__ import annotations

import hashlib
from pathlib import Path
from typing import Any

from remote_payload.faults import AdapterIsZero, AdapterNotFinite, BadBase, UnknownMethod
from remote_payload.spec import Knobs, Spec

METHODS = ("lora", "qlora")
ADAPTER = "adapter.safetensors"


def check_base(base: Path, spec: Spec) -> None:
    """Every file of the spec is there with its digest, and the method is known. Raises BadBase, UnknownMethod."""
    if spec.method not in METHODS:
        raise UnknownMethod
    for name, expected in spec.files:
        path = base / name
        if Path(name).is_absolute() or ".." in Path(name).parts or not path.is_file():
            raise BadBase
        with path.open("rb") as file:
            if hashlib.file_digest(file, "sha256").hexdigest() != expected:
                raise BadBase


def load_base(base: Path, method: str) -> tuple[Any, Any]:
    """(model, tokenizer), the model on the one device there is. Raises BadBase for weights that are not safetensors."""
    import torch
    from transformers import AutoConfig, AutoModelForCausalLM, AutoTokenizer
    here: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
    try:
        tokenizer = AutoTokenizer.from_pretrained(base, **here)
        if tokenizer.pad_token is None:
            tokenizer.pad_token = tokenizer.eos_token
        model = AutoModelForCausalLM.from_pretrained(
            base, use_safetensors=True, dtype=number_type(),
            attn_implementation=attention(AutoConfig.from_pretrained(base, **here)),
            device_map={"": 0 if torch.cuda.is_available() else "cpu"},
            quantization_config=_four_bits() if method == "qlora" else None, **here)
    except (OSError, ValueError) as error:
        raise BadBase from error
    return model, tokenizer


def attention(config: Any) -> str:
    """The fast kernel, but for models that cap their attention scores (Gemma 2), which only plain attention can do."""
    return "eager" if getattr(config, "attn_logit_softcapping", None) else "sdpa"


def number_type() -> Any:
    """bfloat16 is nearly four times slower than float32 on most CPUs."""
    import torch
    return torch.bfloat16 if torch.cuda.is_available() else torch.float32


def _four_bits() -> Any:
    from transformers import BitsAndBytesConfig
    return BitsAndBytesConfig(load_in_4bit=True, bnb_4bit_quant_type="nf4", bnb_4bit_use_double_quant=True,
                              bnb_4bit_compute_dtype=number_type())


def lora(knobs: Knobs) -> Any:
    """peft's configuration of what is trained."""
    from peft import LoraConfig
    targets = knobs.words("target_modules")
    return LoraConfig(
        r=knobs.integer("lora_r"), lora_alpha=knobs.integer("lora_alpha"), lora_dropout=knobs.decimal("lora_dropout"),
        target_modules="all-linear" if targets == ["all-linear"] else targets,
        modules_to_save=knobs.words("modules_to_save") or None, task_type="CAUSAL_LM")


def adapter_bytes(model: Any) -> bytes:
    """The adapter as one safetensors file in memory. Raises AdapterNotFinite, AdapterIsZero."""
    import torch
    from peft import get_peft_model_state_dict
    from safetensors.torch import save
    state = get_peft_model_state_dict(model, save_embedding_layers=False)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in state.items()}
    if not all(bool(torch.isfinite(tensor).all()) for tensor in tensors.values()):
        raise AdapterNotFinite
    changed = [tensor for name, tensor in tensors.items() if "lora_B" in name]
    if not any(bool(tensor.any()) for tensor in changed):
        raise AdapterIsZero
    return bytes(save(tensors, metadata={"format": "pt"}))


def put_adapter(model: Any, blob: bytes) -> None:
    """Loads an adapter into the one that is there. Each weight keeps its type, so that going on is exact."""
    from peft import set_peft_model_state_dict
    from safetensors.torch import load
    set_peft_model_state_dict(model, load(blob))
