"""Peaks of real trainings as their makers published them, and how each run was set. No figure here is ours.

`gb`: 10^9 bytes, or GiB where the source means that. `sees`: what the figure counts. allocated: torch's own count, without
CUDA's context; reserved: with what torch keeps back; device: what the driver shows. A source that says "GB" of a driver's
or torch's figure is taken at its word. `why`: for a row that the estimate misses, what it does not know.
"""
from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from orchestrator.planning.memory import Setting
from orchestrator.planning.models import must_be_named
from orchestrator.planning.shapes import Shape

FACTORY = "LLaMA-Factory wiki, Performance comparison, 15 Apr 2024 (A100 40 GB; whole GB)"
QWEN = "QwenLM/Qwen README, Profiling of Memory and Speed, 30 Nov 2023 (A100 80 GB)"
LITGPT = "Lightning-AI/litgpt tutorials/resource-tables.md, 20 Oct 2023 (A100 40 GB)"
ANSWER = "AnswerDotAI/fsdp_qlora benchmarks_03_2024.md, Mar 2024 (2 x RTX 3090, weights whole on each)"
TUNE = "pytorch/torchtune README, Memory and training speed, Sep 2024"


@dataclass(frozen=True)
class Published:
    what: str
    source: str
    shape: Shape
    setting: Setting
    bytes: float
    sees: str
    why: str = ""


def old(method: str, batch: int, length: int, rank: int, **more: Any) -> Setting:
    """Trainers before 2024-25: all logits at once; peft then kept an adapter in the base's own kind of number."""
    return Setting(method, rank, batch=batch, length=length, head="full", **{"adapter": 2, **more})


def qwen(layers: int, hidden: int, inner: int, vocabulary: int) -> Shape:
    """The first Qwen: as many heads for keys as for queries, biases on q, k and v; `inner` is half of its config's."""
    return Shape("qwen", vocabulary, hidden, inner, layers, hidden // 128, hidden // 128, 128, biased=True)


L7, L13 = must_be_named("Llama-2-7b-hf"), must_be_named("Llama-2-13b-hf")
L8 = must_be_named("Llama-3.1-8B")
Q7, Q14, Q72 = qwen(32, 4096, 11008, 151936), qwen(40, 5120, 13696, 152064), qwen(80, 8192, 24576, 152064)
GB, GIB = 10**9, 2**30
DEEPSPEED = {"moments": 12}              # fp16 with a 32-bit copy of each trained number
IN_LITGPT: dict[str, Any] = {"targets": ("q_proj", "v_proj"), "checkpointing": False}
KEPT_INPUTS = "bitsandbytes 0.41 kept the input of every four-bit weight for the way back (MatMul4Bit: " \
              "ctx.tensors = (A, B)); today's keeps the weight only"
SHARDED = "FSDP's flat copies of the trained weights and blocks that torch keeps back; the same source's LoRA row fits"
LONGEST = 1304                           # tokens of Alpaca's longest row for Llama 2, says the table

PUBLISHED = (
    Published("Llama-2-7B QLoRA, 4,096", FACTORY, L7, old("qlora", 1, 4096, 8), 9 * GB, "device"),
    Published("Llama-2-7B QLoRA, 8,192", FACTORY, L7, old("qlora", 1, 8192, 8), 12 * GB, "device"),
    Published("Llama-2-7B QLoRA, 16,384", FACTORY, L7, old("qlora", 1, 16384, 8), 19 * GB, "device"),
    Published("Llama-2-7B QLoRA, 32,768", FACTORY, L7, old("qlora", 1, 32768, 8), 32 * GB, "device"),
    Published("Llama-2-7B LoRA, 4 x 1,024", FACTORY, L7, old("lora", 4, 1024, 8), 17 * GB, "device"),
    Published("Qwen-7B LoRA, 1,024", QWEN, Q7, old("lora", 1, 1024, 64), 21.5 * GB, "device"),
    Published("Qwen-7B LoRA, 2,048", QWEN, Q7, old("lora", 1, 2048, 64), 23.8 * GB, "device"),
    Published("Qwen-7B LoRA, 8,192", QWEN, Q7, old("lora", 1, 8192, 64), 36.6 * GB, "device"),
    Published("Qwen-14B LoRA, 2,048", QWEN, Q14, old("lora", 1, 2048, 64), 37.4 * GB, "device"),
    Published("Qwen-7B Q-LoRA, 2,048", QWEN, Q7, old("qlora", 1, 2048, 64, **DEEPSPEED), 13.9 * GB, "device"),
    Published("Qwen-14B Q-LoRA, 2,048", QWEN, Q14, old("qlora", 1, 2048, 64, **DEEPSPEED), 19.9 * GB, "device"),
    Published("Qwen-72B Q-LoRA, 2,048", QWEN, Q72, old("qlora", 1, 2048, 64, **DEEPSPEED), 64.1 * GB, "device"),
    Published("Qwen-72B Q-LoRA, 4,096", QWEN, Q72, old("qlora", 1, 4096, 64, **DEEPSPEED), 68.0 * GB, "device"),
    Published("Llama-2-7B LoRA, 1", LITGPT, L7, old("lora", 1, LONGEST, 8, **IN_LITGPT), 21.30 * GB, "allocated"),
    Published("Llama-2-7B QLoRA, 1", LITGPT, L7, old("qlora", 1, LONGEST, 8, **IN_LITGPT), 13.84 * GB, "allocated",
              KEPT_INPUTS),
    Published("Llama-2-7B QLoRA, constants plain", LITGPT, L7, old("qlora", 1, LONGEST, 8, double=False, **IN_LITGPT),
              14.14 * GB, "allocated", KEPT_INPUTS),
    Published("Llama-2-7B LoRA, 2", LITGPT, L7, old("lora", 2, LONGEST, 8, **IN_LITGPT), 29.07 * GB, "allocated"),
    Published("Llama-2-13B LoRA, 1", LITGPT, L13, old("lora", 1, LONGEST, 8, **IN_LITGPT), 38.12 * GB, "allocated"),
    Published("Llama-2-13B QLoRA, 1", LITGPT, L13, old("qlora", 1, LONGEST, 8, **IN_LITGPT), 22.55 * GB, "allocated",
              KEPT_INPUTS),
    Published("Llama-2-7B QLoRA, 8 x 2,048", ANSWER, L7, old("qlora", 8, 2048, 64), 20.94 * GIB, "reserved",
              SHARDED),
    Published("Llama-2-7B LoRA, 4 x 2,048", ANSWER, L7, old("lora", 4, 2048, 64), 22.04 * GIB, "reserved"),
    Published("Llama-3.1-8B QLoRA, 2 x 2,048", TUNE, L8, Setting("qlora", 8, batch=2, length=2048, dropout=False),
              7.4 * GIB, "reserved"),
)
