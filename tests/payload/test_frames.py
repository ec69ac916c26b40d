"""The node's frame codec: golden bytes, refused bytes, anything at all, and the syntax of Python 3.8."""
from __future__ import annotations

import ast
import io
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from remote_payload import frames
from remote_payload.frames import BadFrame, Frame

pytestmark = pytest.mark.noleak

REPOSITORY = Path(__file__).resolve().parents[2]
GOLDEN = REPOSITORY / "tests" / "golden" / "frames"
FRAMES = json.loads((GOLDEN / "frames.json").read_text())["frames"]
REFUSED = json.loads((GOLDEN / "refused.json").read_text())["refused"]
OF_THE_JOB = {"__init__", "checkpoints", "data", "evaluate", "faults", "harden", "job", "model", "progress", "rehearse",
              "seal", "spec", "train"}   # these run inside the environment only
NODE_SIDE = sorted({path.stem for path in (REPOSITORY / "remote_payload").glob("*.py")} - OF_THE_JOB)


def read(data: bytes, body_max: int = frames.BODY_MAX_UP) -> Frame | None:
    stream = io.BytesIO(data)
    return frames.read(lambda size: bytearray(stream.read(size)), body_max)


@pytest.mark.parametrize("golden", FRAMES, ids=lambda golden: golden["name"])
def test_golden_frames_are_written_and_read_as_they_are(golden: dict[str, Any]) -> None:
    frame = Frame(golden["type"], golden["header"], bytes.fromhex(golden["body"]))
    assert frames.encode(frame).hex() == golden["frame"]
    assert read(bytes.fromhex(golden["frame"])) == frame


@pytest.mark.parametrize("golden", REFUSED, ids=lambda golden: golden["name"])
def test_what_breaks_a_rule_ends_the_channel(golden: dict[str, Any]) -> None:
    with pytest.raises(BadFrame):
        read(bytes.fromhex(golden["bytes"]))


def test_a_stream_may_end_between_two_frames() -> None:
    assert read(b"") is None


def test_what_we_send_keeps_the_caps() -> None:
    for frame in (Frame(1, {"a": "x" * frames.HEADER_MAX}), Frame(1, {}, bytes(frames.BODY_MAX_DOWN + 1)),
                  Frame(1, {"a": [0] * frames.VALUES_MAX}), Frame(1, {"a": 1.5})):
        with pytest.raises(ValueError):
            frames.encode(frame)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200))
def test_any_bytes_are_a_frame_or_a_refusal(data: bytes) -> None:
    try:
        frame = read(data)
    except BadFrame:
        return
    assert frame is None or frames.encode(frame, frames.BODY_MAX_UP) == data[:len(frames.encode(frame))]


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=120))
def test_any_header_is_canonical_or_refused(header: bytes) -> None:
    data = frames.HEAD.pack(b"ST", 1, 1, len(header), 0) + header
    try:
        frame = read(data)
    except BadFrame:
        return
    assert frame is not None and frames.encode(frame) == data


LEAVES = st.none() | st.booleans() | st.integers(-2**63 + 1, 2**63 - 1) | st.text(
    st.characters(exclude_categories=["Cs"]), max_size=8)
TREES = st.recursive(LEAVES, lambda t: st.lists(t, max_size=4) | st.dictionaries(
    st.text(st.characters(exclude_categories=["Cs"]), max_size=4), t, max_size=4), max_leaves=12)


@settings(max_examples=200, deadline=None)
@given(st.dictionaries(st.sampled_from("abcdef"), TREES, max_size=4), st.binary(max_size=64), st.integers(0, 255))
def test_what_is_written_is_read_again(header: dict[str, Any], body: bytes, kind: int) -> None:
    try:
        data = frames.encode(Frame(kind, header, body))
    except (ValueError, BadFrame):
        return
    assert read(data) == Frame(kind, header, body)


@pytest.mark.parametrize("name", NODE_SIDE)
def test_the_node_side_is_written_for_python_3_8(name: str) -> None:
    source = (REPOSITORY / "remote_payload" / f"{name}.py").read_text()
    tree = ast.parse(source, feature_version=(3, 8))
    assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in tree.body)
    for node in ast.walk(tree):
        assert not isinstance(node, ast.Match)


def test_the_agent_imports_nothing_but_the_standard_library() -> None:
    import sys
    ours = {"remote_payload", "__future__", "torch", "numpy", "huggingface_hub"}   # the last three inside the environment
    for name in NODE_SIDE:
        for node in ast.walk(ast.parse((REPOSITORY / "remote_payload" / f"{name}.py").read_text())):
            words = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [
                node.module or ""] if isinstance(node, ast.ImportFrom) else []
            for word in words:
                assert word.split(".")[0] in sys.stdlib_module_names | ours, f"{name} imports {word}"
