"""The training spec as the node reads it: bytes in, checked values out.

The document is public (no path, no secret, no row). A field that is missing, unknown or of the wrong kind
ends the job before the key is used; a knob that nobody knows is refused instead of ignored. Standard library only.
"""
from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from remote_payload.faults import BadKnob, BadSpec, UnknownKnob

SCHEMA = "sealtune/spec/1"
DEFAULTS = {
    "lora_r": "16", "lora_alpha": "32", "lora_dropout": "0.05", "target_modules": "all-linear", "modules_to_save": "",
    "learning_rate": "2e-4", "lr_scheduler_type": "cosine", "warmup_steps": "0", "max_length": "1024",
    "per_device_train_batch_size": "auto", "gradient_accumulation_steps": "1", "num_train_epochs": "3",
    "max_steps": "-1", "max_new_tokens": "64", "eval_generations": "64", "packing": "false",
    "rehearsal_steps": "20", "rehearsal_step_seconds": "0.05", "rehearsal_hang": "0", "rehearsal_fail": "0",
}
FIELDS = {"schema", "job_id", "engine", "method", "base", "knobs", "seed", "data", "train_rows", "held_out_rows",
          "resume", "seal_to", "checkpoints", "limits"}
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")


class Knobs:
    """The trainer's settings, as strings on the wire. Absent means the default of the table above."""

    def __init__(self, given: dict[str, str]) -> None:
        if not set(given) <= set(DEFAULTS):
            raise UnknownKnob
        self._values = {**DEFAULTS, **given}

    def text(self, name: str) -> str:
        return self._values[name]

    def integer(self, name: str) -> int:
        try:
            return int(self._values[name])
        except ValueError:
            raise BadKnob from None

    def decimal(self, name: str) -> float:
        try:
            return float(self._values[name])
        except ValueError:
            raise BadKnob from None

    def flag(self, name: str) -> bool:
        return self._values[name].lower() in ("1", "true", "yes")

    def words(self, name: str) -> list[str]:
        return [word.strip() for word in self._values[name].split(",") if word.strip()]


@dataclass(frozen=True)
class Spec:
    """Counts are rows, steps, seconds, bytes and lines; `files` are (name, sha256 in bare hex)."""

    job_id: str
    engine: str
    method: str
    files: tuple[tuple[str, str], ...]
    knobs: Knobs
    seed: int
    data: str
    train_rows: int
    held_out_rows: int
    resume: str | None
    seal_to: str
    every_seconds: int
    keep: int
    steps: int
    seconds: int
    artifact_bytes: int
    records: int


def read_spec(raw: bytes) -> Spec:
    """Parses and checks the document. Raises BadSpec, UnknownKnob."""
    try:
        tree = json.loads(raw)
        if set(tree) != FIELDS or tree["schema"] != SCHEMA:
            raise BadSpec
        return _spec(tree)
    except (ValueError, KeyError, TypeError):
        raise BadSpec from None


def _spec(tree: dict[str, Any]) -> Spec:
    rule, limits = tree["checkpoints"], tree["limits"]
    spec = Spec(
        job_id=_text(tree["job_id"]), engine=_text(tree["engine"]), method=_text(tree["method"]),
        files=tuple((_text(name), _text(digest)) for name, digest in tree["base"]["files"]),
        knobs=Knobs({_text(name): _text(value) for name, value in tree["knobs"]}),
        seed=_count(tree["seed"]), data=_digest(tree["data"]),
        train_rows=_count(tree["train_rows"]), held_out_rows=_count(tree["held_out_rows"]),
        resume=None if tree["resume"] is None else _digest(tree["resume"]), seal_to=_text(tree["seal_to"]),
        every_seconds=_count(rule["every_seconds"]), keep=_count(rule["keep"]),
        steps=_count(limits["steps"]), seconds=_count(limits["seconds"]),
        artifact_bytes=_count(limits["artifact_bytes"]), records=_count(limits["records"]))
    if not spec.seal_to.startswith("age1"):
        raise BadSpec
    return spec


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise BadSpec
    return value


def _count(value: Any) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise BadSpec
    return value


def _digest(value: Any) -> str:
    if not DIGEST.fullmatch(_text(value)):
        raise BadSpec
    return str(value)
