"""The codec against the golden frames that both sides keep, and against anything at all."""
from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.document import canonical
from orchestrator.node.frames import BODY_MAX_UP, Frame, FrameError, decode, encode, number, take

GOLDEN = Path(__file__).parents[2] / "golden" / "frames"
FRAMES = json.loads((GOLDEN / "frames.json").read_text())["frames"]
REFUSED = json.loads((GOLDEN / "refused.json").read_text())["refused"]

scalars = st.none() | st.booleans() | st.integers(-2**62, 2**62) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=20)
headers = st.dictionaries(st.text(st.characters(exclude_categories=["Cs"]), max_size=10),
                          st.recursive(scalars, lambda inner: st.lists(inner, max_size=3), max_leaves=5), max_size=5)


class Tape:
    """Bytes that end; `most` remembers how much was ever asked for at once."""

    def __init__(self, data: bytes) -> None:
        self._data, self.most = data, 0

    def read(self, size: int) -> bytes:
        self.most = max(self.most, size)
        if len(self._data) < size:
            raise EOFError
        taken, self._data = self._data[:size], self._data[size:]
        return taken


@pytest.mark.parametrize("golden", FRAMES, ids=lambda g: g["name"])
def test_golden_frame(golden: dict) -> None:
    raw, frame = bytes.fromhex(golden["frame"]), Frame(golden["type"], golden["header"], bytes.fromhex(golden["body"]))
    assert encode(frame) == raw
    assert decode(Tape(raw).read, BODY_MAX_UP) == frame


@pytest.mark.parametrize("golden", REFUSED, ids=lambda g: g["name"])
def test_refused_frame_ends_the_channel(golden: dict) -> None:
    tape = Tape(bytes.fromhex(golden["bytes"]))
    with pytest.raises((FrameError, EOFError)):
        decode(tape.read, BODY_MAX_UP)
    assert tape.most <= BODY_MAX_UP


@given(st.integers(0, 255), headers, st.binary(max_size=200))
def test_there_and_back(kind: int, header: dict, body: bytes) -> None:
    frame = Frame(kind, header, body)
    assert decode(Tape(encode(frame)).read) == frame


@given(st.binary(max_size=300))
def test_noise_is_refused_or_a_frame(data: bytes) -> None:
    tape = Tape(b"ST\x01" + data)
    try:
        frame = decode(tape.read)
    except (FrameError, EOFError):
        return
    assert encode(frame).startswith(b"ST\x01")


@given(headers, st.integers(0, 400), st.integers(0, 255))
def test_one_changed_byte_never_gives_another_spelling(header: dict, place: int, value: int) -> None:
    """Whatever still decodes re-encodes to exactly the bytes that came."""
    raw = bytearray(encode(Frame(1, header)))
    raw[place % len(raw)] = value
    try:
        frame = decode(Tape(bytes(raw)).read)
    except (FrameError, EOFError):
        return
    assert canonical(dict(frame.header)) in bytes(raw)


def test_fields_have_types() -> None:
    header = {"a": 1, "b": True, "c": "x", "d": -1}
    assert number(header, "a") == 1
    for name in ("b", "c", "d", "gone"):
        with pytest.raises(FrameError):
            number(header, name)
    with pytest.raises(FrameError):
        take(header, "a", str)
