"""The trainers behind train.py, one module each, imported only when the spec names it.

An engine offers `prepare(job, model, tokenizer, train, held_out, kept)`, which returns an object with
`run() -> int` (trains, says how many steps are done), `seal_checkpoint()`, `evaluate()` (TRL's dict) and
`model`. It writes nothing to a disk but numbers.
"""
from __future__ import annotations

import importlib
from typing import Any

from remote_payload.faults import UnknownEngine

ENGINES = {"trl": "remote_payload.engines.trl"}


def load(name: str) -> Any:
    """The engine's module. Raises UnknownEngine."""
    if name not in ENGINES:
        raise UnknownEngine
    return importlib.import_module(ENGINES[name])
