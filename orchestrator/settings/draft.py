"""A run file, written: from values to a page with a word above each field, in the order in which a person reads it.

The words are the models' own descriptions. It must not judge: what was written is read again before anybody uses it.
"""
from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import BadInput
from .read import load_run
from .schema import NAME
from .values import RunFile

if TYPE_CHECKING:
    from pydantic import BaseModel

Scalar = str | int | Decimal
PLAIN = re.compile(r"(\./)?[A-Za-z][A-Za-z0-9._/-]*")
METHOD = re.compile("lora|qlora")
WORDS = frozenset({"true", "false", "null", "yes", "no", "on", "off", "y", "n", "nan", "inf"})   # to some reader of YAML


@dataclass(frozen=True, slots=True)
class Draft:
    """`fields`, `node`, `training`, `ssh` as they will stand there, in this order; an empty group is left out. `why`: what
    is said below a field's description."""

    fields: Mapping[str, Scalar]
    node: Mapping[str, Scalar] = field(default_factory=dict)
    training: Mapping[str, Scalar] = field(default_factory=dict)
    ssh: Mapping[str, Scalar] = field(default_factory=dict)
    why: Mapping[str, str] = field(default_factory=dict)


def write(path: Path, draft: Draft) -> RunFile:
    """A new file, read as `sealtune run` reads it. BadInput where there is one already, and where it would not do: then
    nothing is left."""
    try:
        data = page(draft, path.name).encode()
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        raise exists(path) from None
    except (OSError, ValueError) as problem:             # ValueError: a name that is no text
        raise _unwritten(path, problem) from problem
    try:
        with os.fdopen(made, "wb") as file:
            file.write(data)
        return load_run(path)
    except BaseException as problem:
        path.unlink()
        if isinstance(problem, OSError):
            raise _unwritten(path, problem) from problem
        raise


def _unwritten(path: Path, problem: Exception) -> BadInput:
    return BadInput(f"{ascii(str(path))[1:-1]}: {(getattr(problem, 'strerror', '') or 'cannot be written').lower()}",
                    hint="name another file")


def must_do(name: str, text: str) -> str:
    """The text of a field as it was said, if it will do there. BadInput."""
    from .models import HOST, USER, Matching, as_money, model_id

    server = re.compile(f"({USER.pattern}@)?{HOST.pattern}")
    judges: dict[str, Callable[[str], object]] = {
        "model": model_id, "budget": as_money, "method": Matching(METHOD, "lora or qlora").check,
        "host": Matching(server, "a host name, an address or an ssh alias; USER@ may stand before it").check}
    try:
        judges[name](text)
    except ValueError as problem:
        raise BadInput(f"{name}: {problem}, not {text!a}") from None
    return text


def exists(path: Path) -> BadInput:
    return BadInput(f"{path} exists already, and is not overwritten", hint="name another file, or take it away")


def page(draft: Draft, name: str) -> str:
    from .models import Node, Run, Ssh, Training

    lines = [f"# yaml-language-server: $schema={NAME}",
             f"# next: sealtune plan {name}, then sealtune run {name}", ""]
    lines += _fields(Run, draft.fields, draft.why, "")
    groups: tuple[tuple[str, type[BaseModel], Mapping[str, Scalar]], ...] = (
        ("ssh", Ssh, draft.ssh), ("node", Node, draft.node), ("training", Training, draft.training))
    for group, model, values in groups:
        if values:
            lines += ["", f"# {Run.model_fields[group].description}", f"{group}:", *_fields(model, values, draft.why, "  ")]
    return "\n".join(lines) + "\n"


def _fields(model: type[BaseModel], values: Mapping[str, Scalar], why: Mapping[str, str], indent: str) -> Iterator[str]:
    for name, value in values.items():
        yield from (f"{indent}# {said}" for said in (model.model_fields[name].description, why.get(name)) if said)
        yield f"{indent}{name}: {spelled(value)}"


def spelled(value: Scalar) -> str:
    """As YAML: a word stands plain, other text in quotes, a number without exponent."""
    if isinstance(value, Decimal):
        return f"{value:f}"
    if isinstance(value, int):
        return str(value)
    plain = PLAIN.fullmatch(value) and value.lower() not in WORDS
    return value if plain else json.dumps(value, ensure_ascii=False)
