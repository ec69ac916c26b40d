"""Values to JSON and back, the same for journal, spec, evidence and report.

Frozen dataclasses only. A field marked PRIVATE travels in a second tree, which the journal keeps out of
the exported chain (only its digest is chained). Unknown fields are refused, missing ones take defaults.
No floats: a decimal is a string. Canonical bytes are those of RFC 8785 for what remains.
"""
from __future__ import annotations

import dataclasses
import enum
import functools
import hashlib
import json
import re
import types
from collections.abc import Mapping
from io import BufferedReader
from pathlib import PurePath
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

from .names import Digest

Json = Any                               # JSON without floats
PRIVATE: Mapping[str, bool] = types.MappingProxyType({"private": True})
T = TypeVar("T")
_STRINGS, _BRACKETS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?', re.DOTALL), re.compile(rb"[\[\]{}]")


def encode(value: Any) -> tuple[Json, Json]:
    """(public, private) trees of a value. TypeError for a float, or for a private field inside a list."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _encode_fields(value)
    if isinstance(value, float):
        raise TypeError(f"no floats in documents: {value!r}")
    if isinstance(value, enum.Enum):
        return value.value, {}
    if isinstance(value, PurePath):
        return str(value), {}
    if isinstance(value, tuple | list):
        pairs = [encode(v) for v in value]
        if any(hidden for _, hidden in pairs):
            raise TypeError("private fields inside a list are not supported")
        return [p for p, _ in pairs], {}
    if isinstance(value, Mapping):
        return {k: encode(v)[0] for k, v in value.items()}, {}
    return value, {}


def _encode_fields(value: Any) -> tuple[dict[str, Json], dict[str, Json]]:
    public: dict[str, Json] = {}
    private: dict[str, Json] = {}
    for f in dataclasses.fields(value):
        shown, hidden = encode(getattr(value, f.name))
        if f.metadata.get("private"):
            private[f.name] = shown
            continue
        public[f.name] = shown
        if hidden:
            private[f.name] = hidden
    return public, private


def decode(kind: type[T], public: Json, private: Json = None) -> T:
    """The value again. ValueError names an unknown field; TypeError a missing one."""
    return _decode(kind, public, private or {})  # type: ignore[no-any-return]


@functools.cache
def _hints(kind: type) -> dict[str, Any]:
    return get_type_hints(kind)


def _decode(kind: Any, public: Json, private: Json) -> Any:
    if kind is Any or kind is None or kind is type(None):
        return public
    origin = get_origin(kind)
    if origin in (Union, types.UnionType):
        if public is None and not private:
            return None
        return _decode(next(a for a in get_args(kind) if a is not type(None)), public, private)
    if origin is tuple:
        args = get_args(kind)
        kinds = [args[0]] * len(public) if args[-1] is Ellipsis else args
        return tuple(_decode(k, v, {}) for k, v in zip(kinds, public, strict=True))
    if origin is not None:               # Mapping[...]
        return public
    if isinstance(kind, type) and dataclasses.is_dataclass(kind):
        return _decode_fields(kind, public or {}, private)
    if isinstance(kind, type) and issubclass(kind, enum.Enum | PurePath):
        return kind(public)
    return public


def _decode_fields(kind: type, public: Mapping[str, Json], private: Mapping[str, Json]) -> Any:
    hints = _hints(kind)
    merged = {**public, **{k: v for k, v in private.items() if k not in public}}
    if unknown := sorted(merged.keys() - hints.keys()):
        raise ValueError(f"unknown field {unknown[0]!r} in {kind.__name__}")
    return kind(**{k: _decode(hints[k], v, private.get(k, {}) if k in public else {}) for k, v in merged.items()})


# ---- canonical bytes --------------------------------------------------------------------------------------


def canonical(value: Json) -> bytes:
    """The one spelling of a JSON tree: sorted keys, no spaces, UTF-8, no floats."""
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def sha256(data: bytes) -> Digest:
    return Digest("sha256:" + hashlib.sha256(data).hexdigest())


def sha256_of(file: BufferedReader) -> Digest:
    """The same of an open file, from where it stands to its end, in little memory."""
    return Digest("sha256:" + hashlib.file_digest(file, "sha256").hexdigest())


def digest_of(value: object) -> Digest:
    """Digest of a value's public tree."""
    return sha256(canonical(encode(value)[0]))


def parse(data: bytes, *, depth: int = 8, values: int = 512) -> Json:
    """Strict JSON from an untrusted peer: no floats, no duplicate keys, bounded depth and count. ValueError."""
    must_be_shallow(data, depth)
    tree = json.loads(data, object_pairs_hook=_no_twins, parse_float=_no_floats, parse_constant=_no_floats)
    if _measure(tree, depth) > values:
        raise ValueError(f"more than {values} values")
    return tree


def must_be_shallow(data: bytes, depth: int) -> None:
    """ValueError for JSON nested deeper, found without recursion: a library that raises Python's recursion limit turns a
    peer's hundred thousand brackets into a crash of the process."""
    level = 0
    for bracket in _BRACKETS.finditer(_STRINGS.sub(b"", data)):
        level += 1 if bracket[0] in b"[{" else -1
        if level > depth + 1:
            raise ValueError("nested too deep")


def _no_twins(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise ValueError("duplicate key")
    return tree


def _no_floats(text: str) -> Json:
    raise ValueError(f"not an integer: {text[:20]}")


def _measure(tree: Json, depth: int) -> int:
    if depth < 0:
        raise ValueError("nested too deep")
    if isinstance(tree, dict):
        return 1 + sum(_measure(v, depth - 1) for v in tree.values())
    if isinstance(tree, list):
        return 1 + sum(_measure(v, depth - 1) for v in tree)
    return 1
