"""The frame protocol, laptop side. The payload has its own copy; golden frames hold the two together.

    frame  = "ST" · version u8 (1) · type u8 · header length u32 · body length u32 · header · body    (big endian)
    header = one canonical JSON object: sorted keys, no spaces, no floats, no twins, depth ≤ 8, ≤ 512 values, ≤ 64 KiB

A request carries its verb's code; the answer is PROGRESS*, then the code + 128 or REFUSED. A frame that breaks a cap
ends the channel: nothing is skipped, nothing resynchronised. This module must not know where the bytes come from.
"""
from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import IntEnum
from typing import TypeVar

from ..domain.document import Json, canonical, parse

MAGIC, VERSION = b"ST", 1
PREFIX = struct.Struct(">2sBBII")
HEADER_MAX = 64 * 1024
BODY_MAX_UP = 8 * 1024 * 1024            # one part of a spool
BODY_MAX_DOWN = 1024 * 1024              # what the node may make us hold at once
PROGRESS, REFUSED, REPLY = 126, 127, 128
INTEGER_MAX = 2**63
T = TypeVar("T")


class Verb(IntEnum):
    HELLO = 1
    ARM = 2
    PROBE = 3
    PARTS = 4
    PUT = 5
    CLOSE = 6
    INSTALL = 7
    FETCH = 8
    CHALLENGE = 9
    START = 10
    RECORDS = 11
    GET = 12
    STOP = 13
    WIPE = 14
    BYE = 15
    DISCARD = 16


class FrameError(ValueError):
    """The peer broke a cap or the grammar."""


@dataclass(frozen=True, slots=True)
class Frame:
    type: int
    header: Mapping[str, Json]
    body: bytes = b""


def encode(frame: Frame, body_max: int = BODY_MAX_UP) -> bytes:
    """The frame's bytes. FrameError where it would break a cap of ours."""
    header = canonical(dict(frame.header))
    if len(header) > HEADER_MAX or len(frame.body) > body_max:
        raise FrameError(f"frame of {len(header)} + {len(frame.body)} bytes is too large")
    read_header(header)
    return PREFIX.pack(MAGIC, VERSION, frame.type, len(header), len(frame.body)) + header + frame.body


def decode(read: Callable[[int], bytes], body_max: int = BODY_MAX_DOWN) -> Frame:
    """The next frame. `read(n)` gives exactly n bytes or raises. Lengths are checked before anything is read."""
    magic, version, kind, header_size, body_size = PREFIX.unpack(read(PREFIX.size))
    if magic != MAGIC or version != VERSION:
        raise FrameError("not a frame")
    if header_size > HEADER_MAX or body_size > body_max:
        raise FrameError(f"frame of {header_size} + {body_size} bytes is too large")
    return Frame(kind, read_header(read(header_size)), read(body_size) if body_size else b"")


def read_header(data: bytes) -> Mapping[str, Json]:
    """A canonical JSON object within the caps."""
    try:
        tree = parse(data)
        if not isinstance(tree, dict) or canonical(tree) != data:
            raise FrameError("header is not a canonical object")
        _small_integers(tree)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"bad header: {type(error).__name__}") from error
    return tree


def _small_integers(tree: Json) -> None:
    if isinstance(tree, int) and not -INTEGER_MAX < tree < INTEGER_MAX:
        raise FrameError("integer beyond 64 bits")
    for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, list) else ():
        _small_integers(value)


def take(header: Mapping[str, Json], name: str, kind: type[T]) -> T:
    """A field of the wanted type; a boolean is not a number. FrameError names the field."""
    value = header.get(name)
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise FrameError(f"field {name!r} is missing or not {kind.__name__}")
    return value


def number(header: Mapping[str, Json], name: str, most: int = 1 << 53) -> int:
    """An integer from 0 to `most`."""
    value = take(header, name, int)
    if not 0 <= value <= most:
        raise FrameError(f"field {name!r} is out of range")
    return value
