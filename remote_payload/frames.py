"""The frame protocol as the node speaks it. The laptop has its own copy; golden files hold the two together.

    frame  = "ST" · version u8 · type u8 · header length u32 · body length u32 · header · body   (big endian)
    header = one JSON object in its canonical spelling, no floats, no twins, depth <= 8, <= 512 values, <= 64 KiB
    body   = raw bytes; a request's may have 8 MiB (one part of a file), an answer's 1 MiB

A frame that breaks a cap ends the channel: nothing is skipped and nothing is resynchronised. Standard library of
Python 3.8. It must not know what the frames mean, and never puts a peer's bytes into a message.
"""
from __future__ import annotations

import json
import os
import struct
from typing import Any, Callable, NamedTuple  # noqa: UP035  subscripted at run time by Python 3.8

Take = Callable[[int], bytearray]        # exactly so many bytes, fewer only at the end of the stream

MAGIC, VERSION = b"ST", 1
HEAD = struct.Struct(">2sBBII")
HEADER_MAX = 64 * 1024
BODY_MAX_UP = 8 * 1024 * 1024
BODY_MAX_DOWN = 1024 * 1024
DEPTH_MAX, VALUES_MAX = 8, 512
INTEGER_MAX = 2**63
DETAIL_MAX = 600                         # characters of a refusal

VERBS = {"hello": 1, "arm": 2, "probe": 3, "parts": 4, "put": 5, "close": 6, "install": 7, "fetch": 8, "challenge": 9,
         "start": 10, "records": 11, "get": 12, "stop": 13, "wipe": 14, "bye": 15, "discard": 16}
NAMES = {code: name for name, code in VERBS.items()}
REPLY = 128                              # added to the verb's code
PROGRESS, REFUSED = 126, 127
REFUSALS = ("busy", "unknown-job", "no-space", "digest", "unsuitable", "not-armed", "started", "internal",
            "bad-request", "python")


class BadFrame(ValueError):
    """The peer broke a cap or the format. The channel ends."""


class Refused(Exception):
    """An answer in words of ours: `code` from REFUSALS, `detail` without a path, a secret or a peer's text."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(code, detail)
        self.code, self.detail = code, detail[:DETAIL_MAX]


class Frame(NamedTuple):
    """One frame. `body` is a bytearray on reading, so that a secret in it can be overwritten."""

    type: int
    header: dict[str, Any]
    body: bytes | bytearray = b""


def canonical(tree: Any) -> bytes:
    """The one spelling of a JSON tree: sorted keys, no spaces, UTF-8, no floats."""
    _refuse_floats(tree)
    return json.dumps(tree, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False).encode()


def parse(data: bytes | bytearray) -> dict[str, Any]:
    """Strict JSON object from a peer. Raises BadFrame."""
    try:
        tree = json.loads(bytes(data).decode(), object_pairs_hook=_no_twins, parse_float=_no_float,
                          parse_constant=_no_float)
        spelled = canonical(tree)
    except RecursionError:
        raise BadFrame("header is nested too deep") from None
    except (ValueError, TypeError):
        raise BadFrame("header is not strict JSON") from None
    if not isinstance(tree, dict):
        raise BadFrame("header is not an object")
    if _measure(tree, DEPTH_MAX) > VALUES_MAX:
        raise BadFrame("header has too many values")
    if spelled != data:
        raise BadFrame("header is not canonical")
    return tree


def encode(frame: Frame, body_max: int = BODY_MAX_DOWN) -> bytes:
    """The bytes of a frame; ValueError when we would break a cap ourselves."""
    header = canonical(frame.header)
    if len(header) > HEADER_MAX or len(frame.body) > body_max or _measure(frame.header, DEPTH_MAX) > VALUES_MAX:
        raise ValueError("frame is too large")
    return HEAD.pack(MAGIC, VERSION, frame.type, len(header), len(frame.body)) + header + bytes(frame.body)


def read(take: Take, body_max: int = BODY_MAX_UP) -> Frame | None:
    """The next frame, or None at a clean end."""
    head = take(HEAD.size)
    if not head:
        return None
    if len(head) < HEAD.size:
        raise BadFrame("stream ended inside a frame")
    magic, version, kind, header_size, body_size = HEAD.unpack(head)
    if magic != MAGIC or version != VERSION:
        raise BadFrame("not a frame of this version")
    if header_size > HEADER_MAX or body_size > body_max:
        raise BadFrame("frame is too large")
    header, body = take(header_size), take(body_size)
    if len(header) < header_size or len(body) < body_size:
        raise BadFrame("stream ended inside a frame")
    return Frame(kind, parse(header), body)


def taker(fd: int) -> Take:
    """`take` over a blocking descriptor. Memory grows with what really arrived, not with what was announced."""
    def take(size: int) -> bytearray:
        got = bytearray()
        while len(got) < size:
            chunk = os.read(fd, min(size - len(got), 1 << 18))
            if not chunk:
                break
            got += chunk
        return got
    return take


def send(fd: int, frame: Frame, body_max: int = BODY_MAX_DOWN) -> None:
    """Writes the whole frame. OSError when the peer is gone."""
    view = memoryview(encode(frame, body_max))
    while view:
        view = view[os.write(fd, view):]


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise ValueError("duplicate key")
    return tree


def _no_float(text: str) -> Any:
    raise ValueError("not an integer")


def _refuse_floats(tree: Any) -> None:
    if isinstance(tree, float):
        raise ValueError("not an integer")
    if isinstance(tree, int) and not -INTEGER_MAX < tree < INTEGER_MAX:
        raise ValueError("integer is too large")
    for value in tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (list, tuple)) else ():
        _refuse_floats(value)


def _measure(tree: Any, depth: int) -> int:
    """How many values, containers included. BadFrame when nested deeper than `depth`."""
    if depth < 0:
        raise BadFrame("header is nested too deep")
    if isinstance(tree, dict):
        return 1 + sum(_measure(value, depth - 1) for value in tree.values())
    if isinstance(tree, (list, tuple)):
        return 1 + sum(_measure(value, depth - 1) for value in tree)
    return 1
