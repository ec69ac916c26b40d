"""What `sealtune plan` is asked for: model, method, knobs and data, from the run file, the command line, table or hub."""
from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from .. import wiring
from ..domain.document import Json, must_be_shallow
from ..errors import BadInput
from ..outlook import row_tokens
from ..planning.forecast import Planned, planned
from ..planning.hours import tokens_in
from ..planning.memory import METHODS
from ..planning.models import must_be_named, named
from ..planning.shapes import Shape, shape_of
from ..settings.values import RunFile, Settings


@dataclass(frozen=True, slots=True)
class Asked:
    """A run file's words, and the command line's before them."""

    model: str
    config: Path | None
    method: str
    knobs: Mapping[str, str]


def wanted(model: str, config: Path | None, method: str, batch: int, length: int, run_file: RunFile | None) -> Asked:
    named = model or (run_file.model if run_file else "") or (str(config) if config else "")
    if not named:
        raise BadInput("nothing to plan", hint="sealtune plan RUNFILE, or sealtune plan --model OWNER/NAME")
    way = method or (run_file.method if run_file else "qlora")
    if way not in METHODS:
        raise BadInput(f"--method {way!r} is not known", hint=f"one of {', '.join(METHODS)}")
    knobs = dict(run_file.knobs) if run_file else {}
    knobs |= {"per_device_train_batch_size": str(batch)} if batch else {}
    return Asked(named, config, way, knobs | ({"max_length": str(length)} if length else {}))


def planned_run(settings: Settings, run_file: RunFile | None, asked: Asked, rows: int, row_bytes: int) -> Planned:
    """From the data of the run file, or from as many rows as were said."""
    shape, weights = shape_of_model(settings, run_file, asked)
    train, held_out, tokens, chat = rows - rows // 10, rows // 10, tokens_in(row_bytes, 1), True
    if run_file:
        facts = wiring.checked(settings, run_file)
        train, held_out, chat = facts.train, facts.held_out, facts.kind == "messages"
        tokens = row_tokens(facts)
    return planned(shape, asked.method, tuple(asked.knobs.items()), train, held_out, tokens, chat, weights,
                   wiring.paces(settings))


def shape_of_model(settings: Settings, run_file: RunFile | None, asked: Asked) -> tuple[Shape, int]:
    """(shape, bytes of its files or 0): from the file that was named, the table, or the hub, in this order."""
    if asked.config:
        return shape_of(config_in(asked.config), asked.model), 0
    if (known := named(asked.model)) is not None:
        return known, 0
    if "/" not in asked.model:
        return must_be_named(asked.model), 0
    config, size = wiring.described(settings.hub, asked.model, run_file.revision if run_file else "main")
    return shape_of(config, asked.model), size


def config_in(path: Path) -> Mapping[str, Json]:


    try:
        data = path.read_bytes()
        must_be_shallow(data, 64)
        tree = json.loads(data)
    except (OSError, ValueError):
        raise BadInput(f"{path.name} cannot be read as JSON", hint="name the model's config.json") from None
    if not isinstance(tree, dict):
        raise BadInput(f"{path.name} is no model's config.json")
    return tree
