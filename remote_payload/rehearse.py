"""The job without a model: the same arguments, records, files, signals and exit codes, in seconds and without torch.

Crash tests and hostile-node tests run against it. It learns nothing and says so by its engine's name; the
adapter has the names and shapes that a LoRA of this base would have, so that the laptop checks it the same way.
Needs pyrage and zstandard only.
"""
from __future__ import annotations

import json
import math
import signal
import struct
import time
from pathlib import Path
from typing import Any

from remote_payload.checkpoints import pack
from remote_payload.data import Rows
from remote_payload.evaluate import SHOWN, Figures, document, result
from remote_payload.faults import RehearsedFault, Stopped
from remote_payload.job import Job, open_cargo, run
from remote_payload.spec import Knobs

SMALLEST = {"hidden_size": 64, "intermediate_size": 192, "num_hidden_layers": 2, "num_attention_heads": 4,
            "num_key_value_heads": 2, "vocab_size": 512}
START_LOSS, DECAY = 6.2, 0.9
TOKENS_A_STEP = 640
Shapes = dict[str, tuple[int, ...]]


def main(argv: list[str]) -> int:
    return run(argv, rehearse)


def rehearse(job: Job) -> None:
    """Check, load, step, evaluate, seal: the phases of train.py in their order."""
    rows, kept = open_cargo(job)
    job.records.phase("loading")
    done = kept.step if kept else 0
    total = job.spec.knobs.integer("rehearsal_steps")

    job.records.phase("training")
    job.rule.taken()
    if job.spec.knobs.flag("rehearsal_fail"):
        raise RehearsedFault
    if job.spec.knobs.flag("rehearsal_hang"):
        _hang(job, done)
    for step in range(done + 1, total + 1):
        _step(job, step, total)

    job.records.phase("evaluating")
    base, adapter = _figures(rows, total)
    job.records.emit("result", **result(base, adapter, total, time.monotonic() - job.started))

    job.records.phase("sealing")
    job.publisher.publish("adapter.age", adapter_file(job.base, job.spec.knobs))
    job.publisher.publish("evaluation.age", document(rows, base, adapter))
    job.records.phase("done")


def _step(job: Job, step: int, total: int) -> None:
    """One step, its record, and a checkpoint where one is due or a stop was asked for."""
    job.stop.patient = True
    time.sleep(job.spec.knobs.decimal("rehearsal_step_seconds"))
    job.records.step(step=step, of=total, loss=_loss(step), lr=1e-3 * (1 - step / (total + 1)), grad_norm=1.0,
                     tok=TOKENS_A_STEP * step, tok_s=TOKENS_A_STEP * 10.0, mem_mib=64, epoch=step / total)
    if job.stop.asked or job.rule.due():
        _seal_checkpoint(job, step)
    job.stop.patient = False
    if job.stop.asked:
        raise Stopped


def _hang(job: Job, done: int) -> None:
    """Sleeps until a signal comes; even then it seals a checkpoint, like a slow step would."""
    job.stop.patient = True
    while not job.stop.asked:
        signal.pause()
    _seal_checkpoint(job, done)
    raise Stopped


def _seal_checkpoint(job: Job, step: int) -> None:
    state = json.dumps({"global_step": step}).encode()
    job.publisher.checkpoint(step, pack(step, TOKENS_A_STEP * step, {"trainer_state.json": state}), job.spec.keep)
    job.rule.taken()


def _loss(step: int) -> float:
    return START_LOSS * DECAY ** step + 0.01


def _figures(rows: Rows, steps: int) -> tuple[Figures, Figures]:
    """A base that knows nothing and an adapter that answers as expected: a plausible pair, nothing measured."""
    held_out = len(rows.held_out)
    if rows.kind != "messages" or not held_out:
        return Figures(START_LOSS, None, held_out, 0), Figures(_loss(steps), None, held_out, 0)
    expected = [row["messages"][-1]["content"] for row in rows.held_out[:SHOWN]]
    return (Figures(START_LOSS, 0.0, held_out, len(expected), [""] * len(expected)),
            Figures(_loss(steps), 1.0, held_out, len(expected), expected))


def adapter_file(base: Path, knobs: Knobs) -> bytes:
    """A safetensors file by hand: header length (u64, little endian), JSON header, float32 tensors end to end."""
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    body = bytearray()
    for name, shape in sorted(adapter_shapes(_config(base), knobs).items()):
        begin = len(body)
        body += struct.pack("<f", 0.01) * math.prod(shape)
        header[name] = {"dtype": "F32", "shape": list(shape), "data_offsets": [begin, len(body)]}
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text + bytes(body)


def _config(base: Path) -> dict[str, Any]:
    try:
        return {**SMALLEST, **json.loads((base / "config.json").read_text())}
    except (OSError, ValueError):
        return SMALLEST


def adapter_shapes(config: dict[str, Any], knobs: Knobs) -> Shapes:
    """Tensor names and shapes of a LoRA on a Llama-shaped model, as peft saves them."""
    hidden, inner, heads = config["hidden_size"], config["intermediate_size"], config["num_attention_heads"]
    head = config.get("head_dim") or hidden // heads
    wide, narrow, rank = heads * head, config["num_key_value_heads"] * head, knobs.integer("lora_r")
    linear = {"self_attn.q_proj": (wide, hidden), "self_attn.k_proj": (narrow, hidden),
              "self_attn.v_proj": (narrow, hidden), "self_attn.o_proj": (hidden, wide),
              "mlp.gate_proj": (inner, hidden), "mlp.up_proj": (inner, hidden), "mlp.down_proj": (hidden, inner)}
    wanted = knobs.words("target_modules")
    shapes: Shapes = {}
    for layer in range(config["num_hidden_layers"]):
        for name, (out, into) in linear.items():
            if wanted == ["all-linear"] or name.split(".")[-1] in wanted:
                stem = f"base_model.model.model.layers.{layer}.{name}"
                shapes[f"{stem}.lora_A.weight"] = (rank, into)
                shapes[f"{stem}.lora_B.weight"] = (out, rank)
    saved = {"lm_head": "base_model.model.lm_head.weight", "embed_tokens": "base_model.model.model.embed_tokens.weight"}
    for module in knobs.words("modules_to_save"):
        if module in saved:
            shapes[saved[module]] = (config["vocab_size"], hidden)
    return shapes
