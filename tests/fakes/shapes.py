"""Holds a JSON value against a TypedDict: what does not fit, by its place. Every key must be there, and no other."""
from __future__ import annotations

import types
from collections.abc import Iterator
from typing import Any, Literal, Union, get_args, get_origin, get_type_hints, is_typeddict


def misfits(kind: Any, value: Any, place: str = "") -> list[str]:
    return list(_misfits(kind, value, place))


def _misfits(kind: Any, value: Any, place: str) -> Iterator[str]:
    origin, parts = get_origin(kind), get_args(kind)
    if is_typeddict(kind):
        yield from _of_keys(get_type_hints(kind), value, place)
    elif origin in (Union, types.UnionType):
        found = [misfits(one, value, place) for one in parts]
        if all(found):
            yield from min((one for one in found), key=lambda one: (one[0].startswith(f"{place}: "), len(one)))
    elif origin is Literal:
        if value not in parts:
            yield f"{place}: {value!r} is none of {parts}"
    elif origin is list:
        yield from _each(parts[0], enumerate(value), place) if isinstance(value, list) else [f"{place}: no list"]
    elif origin is dict:
        yield from _each(parts[1], value.items(), place) if isinstance(value, dict) else [f"{place}: no object"]
    elif not _plain(kind, value):
        yield f"{place}: {value!r} is no {getattr(kind, '__name__', kind)}"


def _of_keys(hints: dict[str, Any], value: Any, place: str) -> Iterator[str]:
    if not isinstance(value, dict):
        yield f"{place}: no object"
        return
    yield from (f"{place}.{name}: missing" for name in hints.keys() - value.keys())
    yield from (f"{place}.{name}: not documented" for name in value.keys() - hints.keys())
    for name in hints.keys() & value.keys():
        yield from _misfits(hints[name], value[name], f"{place}.{name}")


def _each(kind: Any, items: Any, place: str) -> Iterator[str]:
    for name, one in items:
        yield from _misfits(kind, one, f"{place}[{name}]")


def _plain(kind: Any, value: Any) -> bool:
    """A JSON number without a fraction is a float, too; true is no number."""
    if kind in (None, type(None)):
        return value is None
    if kind is bool or isinstance(value, bool):
        return kind is bool and isinstance(value, bool)
    return isinstance(value, (int, float) if kind is float else kind)
