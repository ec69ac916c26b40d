"""As much of JSON Schema as our schemas use: what is wrong with a value, by its place. An unknown keyword is an error here,
so that no schema says more than is looked at."""
from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

WORDS = frozenset({"$schema", "$defs", "title", "description", "default", "examples", "then", "else"})
KINDS: dict[str, tuple[type, ...]] = {"string": (str,), "object": (dict,), "array": (list,), "boolean": (bool,),
                                      "null": (type(None),), "integer": (int,), "number": (int, float)}
Judge = Callable[[Any, Any, Any], bool]


def _is(kind: str, value: Any) -> bool:
    return isinstance(value, KINDS[kind]) and (kind == "boolean" or not isinstance(value, bool))


RULES: dict[str, Judge] = {
    "type": lambda said, value, _: any(_is(kind, value) for kind in ([said] if isinstance(said, str) else said)),
    "enum": lambda said, value, _: value in said,
    "const": lambda said, value, _: bool(value == said),
    "pattern": lambda said, value, _: not isinstance(value, str) or bool(re.search(said, value)),
    "minLength": lambda said, value, _: not isinstance(value, str) or len(value) >= said,
    "minimum": lambda said, value, _: not _is("number", value) or value >= said,
    "maximum": lambda said, value, _: not _is("number", value) or value <= said,
    "exclusiveMinimum": lambda said, value, _: not _is("number", value) or value > said,
    "exclusiveMaximum": lambda said, value, _: not _is("number", value) or value < said,
    "required": lambda said, value, _: not isinstance(value, dict) or set(said) <= set(value),
    "anyOf": lambda said, value, root: any(not list(faults(one, value, root)) for one in said),
    "not": lambda said, value, root: bool(list(faults(said, value, root))),
}


def faults(schema: Any, value: Any, root: Any = None, place: str = "") -> Iterator[str]:
    """What is wrong, and where; nothing where the value is good."""
    root = schema if root is None else root
    for word, said in schema.items():
        if word in RULES:
            if not RULES[word](said, value, root):
                yield f"{place or 'all'}: {word} {said!r}, not {value!r}"
        elif word == "$ref":
            yield from faults(root["$defs"][said.rsplit("/", 1)[1]], value, root, place)
        elif word == "if":
            branch = "else" if list(faults(said, value, root)) else "then"
            yield from faults(schema.get(branch, {}), value, root, place)
        elif word in ("properties", "additionalProperties", "items"):
            yield from _within(word, said, schema, value, root, place)
        elif word not in WORDS:
            raise AssertionError(f"{word} is not looked at")


def _within(word: str, said: Any, schema: Any, value: Any, root: Any, place: str) -> Iterator[str]:
    if word == "items" and isinstance(value, list):
        for number, one in enumerate(value):
            yield from faults(said, one, root, f"{place}[{number}]")
    if word == "items" or not isinstance(value, dict):
        return
    known = schema.get("properties", {})
    for name, one in value.items():
        if word == "properties" and name in said:
            yield from faults(said[name], one, root, f"{place}.{name}")
        if word == "additionalProperties" and name not in known:
            yield from [f"{place}.{name}: not known"] if said is False else faults(said, one, root, f"{place}.{name}")
