"""Shapes of named models, so that a plan needs no hub. Pure; a table with its source.

Each line has fields of the model's config.json on the public hub, and the number of parameters that the hub shows for its
safetensors. The number that follows from the fields is exactly that one, which a test holds: a wrong field would show.
"""
from __future__ import annotations

from ..errors import BadInput
from .shapes import Shape

# id: family, vocabulary, hidden, inner, layers, heads, kv heads, head dim, tied, parameters that the hub shows
TABLE: dict[str, tuple[str, int, int, int, int, int, int, int, bool, int]] = {
    "meta-llama/Llama-3.1-8B": ("llama", 128256, 4096, 14336, 32, 32, 8, 128, False, 8_030_261_248),
    "meta-llama/Llama-3.1-70B": ("llama", 128256, 8192, 28672, 80, 64, 8, 128, False, 70_553_706_496),
    "meta-llama/Llama-3.2-1B": ("llama", 128256, 2048, 8192, 16, 32, 8, 64, True, 1_235_814_400),
    "meta-llama/Llama-3.2-3B": ("llama", 128256, 3072, 8192, 28, 24, 8, 128, True, 3_212_749_824),
    "meta-llama/Llama-2-7b-hf": ("llama", 32000, 4096, 11008, 32, 32, 32, 128, False, 6_738_415_616),
    "meta-llama/Llama-2-13b-hf": ("llama", 32000, 5120, 13824, 40, 40, 40, 128, False, 13_015_864_320),
    "meta-llama/Llama-2-70b-hf": ("llama", 32000, 8192, 28672, 80, 64, 8, 128, False, 68_976_648_192),
    "TinyLlama/TinyLlama-1.1B-Chat-v1.0": ("llama", 32000, 2048, 5632, 22, 32, 4, 64, False, 1_100_048_384),
    "01-ai/Yi-34B": ("llama", 64000, 7168, 20480, 60, 56, 8, 128, False, 34_388_917_248),
    "mistralai/Mistral-7B-v0.1": ("mistral", 32000, 4096, 14336, 32, 32, 8, 128, False, 7_241_732_096),
    "mistralai/Mistral-7B-v0.3": ("mistral", 32768, 4096, 14336, 32, 32, 8, 128, False, 7_248_023_552),
    "Qwen/Qwen2-7B": ("qwen2", 152064, 3584, 18944, 28, 28, 4, 128, False, 7_615_616_512),
    "Qwen/Qwen2.5-0.5B": ("qwen2", 151936, 896, 4864, 24, 14, 2, 64, True, 494_032_768),
    "Qwen/Qwen2.5-1.5B": ("qwen2", 151936, 1536, 8960, 28, 12, 2, 128, True, 1_543_714_304),
    "Qwen/Qwen2.5-7B": ("qwen2", 152064, 3584, 18944, 28, 28, 4, 128, False, 7_615_616_512),
    "Qwen/Qwen2.5-14B": ("qwen2", 152064, 5120, 13824, 48, 40, 8, 128, False, 14_770_033_664),
    "Qwen/Qwen2.5-32B": ("qwen2", 152064, 5120, 27648, 64, 40, 8, 128, False, 32_763_876_352),
    "Qwen/Qwen2.5-72B": ("qwen2", 152064, 8192, 29568, 80, 64, 8, 128, False, 72_706_203_648),
    "Qwen/Qwen3-8B": ("qwen3", 151936, 4096, 12288, 36, 32, 8, 128, False, 8_190_735_360),
    "google/gemma-2-2b": ("gemma2", 256000, 2304, 9216, 26, 8, 4, 256, True, 2_614_341_888),
    "google/gemma-2-9b": ("gemma2", 256000, 3584, 14336, 42, 16, 8, 256, True, 9_241_705_984),
    "google/gemma-2-27b": ("gemma2", 256000, 4608, 36864, 46, 32, 16, 128, True, 27_227_128_320),
    "microsoft/Phi-3-mini-4k-instruct": ("phi3", 32064, 3072, 8192, 32, 32, 32, 96, False, 3_821_079_552),
    "sealtune-lab/tiny-llama": ("llama", 512, 64, 192, 2, 4, 2, 16, False, 164_160),
}


def named(model: str) -> Shape | None:
    """By hub id, or by its last part where that means one model only, in any case; None when it is not in the table."""
    wanted = model.casefold()
    found = [name for name in TABLE if wanted in (name.casefold(), name.casefold().split("/")[1])]
    return _shape(found[0]) if len(found) == 1 else None


def must_be_named(model: str) -> Shape:
    """BadInput with the nearest names."""
    if (shape := named(model)) is not None:
        return shape
    import difflib

    known = {name.casefold().split("/")[1]: name for name in TABLE}
    near = difflib.get_close_matches(model.casefold().split("/")[-1], list(known), n=3, cutoff=0.4)
    hint = f"did you mean {', '.join(known[name] for name in near)}" if near else "give its config.json with --config"
    raise BadInput(f"the shape of {model} is not known here", hint=hint)


def published(model: str) -> int:
    """The number of parameters that the hub shows."""
    return TABLE[model][-1]


def _shape(model: str) -> Shape:
    from .shapes import shape_of

    family, vocabulary, hidden, inner, layers, heads, kv_heads, head_dim, tied, _ = TABLE[model]
    return shape_of({
        "model_type": family, "vocab_size": vocabulary, "hidden_size": hidden, "intermediate_size": inner,
        "num_hidden_layers": layers, "num_attention_heads": heads, "num_key_value_heads": kv_heads, "head_dim": head_dim,
        "tie_word_embeddings": tied, "attn_logit_softcapping": 50.0 if family == "gemma2" else None}, model)
