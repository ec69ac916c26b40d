"""Base against adapter on the held-out rows, in the process that trained: loss, and exact match by greedy answers.

The base is the same model with its adapter switched off, so it is never loaded twice. Prompts are padded on
the left: padding on the right makes a model answer to padding. Answers leave sealed, figures leave as records.
"""
from __future__ import annotations

import json
import math
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any

from remote_payload import data
from remote_payload.data import IGNORED, Rows, Tokenised

SCHEMA = "sealtune/evaluation/1"
SHOWN = 64                           # answers that the sealed comparison holds at most
AT_ONCE = 16                         # prompts in one generation
LARGEST_LOSS = 27.0                  # beyond it a perplexity has more digits than the laptop reads


@dataclass(frozen=True)
class Figures:
    """One side of the comparison. `loss` is the mean over rows; exact match is a share, None without answers."""

    loss: float | None
    exact_match: float | None
    held_out: int
    generations: int
    answers: list[str] = field(default_factory=list)


def measure(trainer: Any, tokenizer: Any, rows: Rows, held_out: list[Tokenised], knobs: Any,
            adapter: bool) -> Figures:
    """Figures of the model with (`adapter`) or without what was trained. Needs at least one held-out row."""
    model = trainer.model
    model.gradient_checkpointing_disable()
    model.config.use_cache = True
    model.eval()
    with nullcontext() if adapter else model.disable_adapter():
        loss = float(trainer.evaluate()["eval_loss"])
        if rows.kind != "messages":
            return Figures(loss, None, len(held_out), 0)
        part = rows.held_out[:knobs.integer("eval_generations")]
        asked = data.prompts(part, tokenizer)
        room = trainer.args.per_device_train_batch_size * trainer.args.max_length
        answers = _answers(model, tokenizer, asked, _ends(tokenizer, model, held_out), knobs.integer("max_new_tokens"), room)
    right = sum(a.strip() == row["messages"][-1]["content"].strip() for a, row in zip(answers, part, strict=True))
    return Figures(loss, right / len(part) if part else None, len(held_out), len(part), answers)


def _ends(tokenizer: Any, model: Any, held_out: list[Tokenised]) -> list[int]:
    """Tokens that end an answer: what the model declares, and the special tokens that close the rows' answers."""
    declared = model.generation_config.eos_token_id
    ends = {*(declared if isinstance(declared, list) else [declared]), tokenizer.eos_token_id}
    special = set(tokenizer.all_special_ids)
    ends |= {label for row in held_out[:AT_ONCE] for label in row["labels"] if label != IGNORED and label in special}
    return sorted(end for end in ends if end is not None)


def at_once(longest: int, room: int) -> int:
    """Prompts in one generation: what they keep must not pass what training kept for its `room` tokens, since keys and
    values of a token take up to twice as much as a layer's input, and memory must not run out after the training."""
    return max(1, min(AT_ONCE, room // (2 * longest)))


def _answers(model: Any, tokenizer: Any, asked: list[list[int]], ends: list[int], most: int, room: int) -> list[str]:
    import torch
    answers: list[str] = []
    step = at_once(max(map(len, asked), default=0) + most, room)
    for start in range(0, len(asked), step):
        batch = asked[start:start + step]
        width = max(map(len, batch))
        ids = torch.tensor([[tokenizer.pad_token_id] * (width - len(p)) + p for p in batch], device=model.device)
        mask = torch.tensor([[0] * (width - len(p)) + [1] * len(p) for p in batch], device=model.device)
        with torch.no_grad():
            made = model.generate(input_ids=ids, attention_mask=mask, max_new_tokens=most, do_sample=False,
                                  eos_token_id=ends, pad_token_id=tokenizer.pad_token_id)
        answers += tokenizer.batch_decode(made[:, width:], skip_special_tokens=True)
    return answers


def result(base: Figures, adapter: Figures, steps: int, seconds: float) -> dict[str, str]:
    """The record's data: decimals as strings, empty where there is nothing to say."""
    return {"base_exact_match": _decimal(base.exact_match), "base_loss": _decimal(base.loss),
            "adapter_exact_match": _decimal(adapter.exact_match), "adapter_loss": _decimal(adapter.loss),
            "held_out": str(adapter.held_out), "generations": str(adapter.generations),
            "steps": str(steps), "train_seconds": f"{seconds:.1f}"}


def document(rows: Rows, base: Figures, adapter: Figures) -> bytes:
    """evaluation.age before it is sealed: both answers to each question beside the expected one."""
    pairs = zip(rows.held_out, base.answers, adapter.answers, strict=False)
    compared = [{"prompt": _question(row), "expected": row["messages"][-1]["content"], "base": before, "adapter": after}
                for row, before, after in list(pairs)[:SHOWN]]
    return json.dumps({"schema": SCHEMA, "rows": compared, "base": _side(base), "adapter": _side(adapter)},
                      ensure_ascii=False, sort_keys=True).encode()


def _question(row: dict[str, Any]) -> str:
    return str(row["messages"][-2]["content"]) if len(row["messages"]) > 1 else ""


def _side(figures: Figures) -> dict[str, str]:
    perplexity = None if figures.loss is None else math.exp(min(figures.loss, LARGEST_LOSS))
    return {"exact_match": _decimal(figures.exact_match), "loss": _decimal(figures.loss),
            "perplexity": _decimal(perplexity), "n": str(figures.held_out)}


def _decimal(value: float | None) -> str:
    return "" if value is None else f"{value:.6f}"
