"""The reader of a stranger's safetensors file against the cases of the security notes, and the writer."""
from __future__ import annotations

import io
import json
import struct
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from safetensors.numpy import load, save

from orchestrator.results.safetensors import Tensor, Unfit, is_finite, is_zero, read_tensors, write_tensors


def file(header: Any, body: bytes = bytes(8), size: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text) if size is None else size) + text + body


def entry(start: int = 0, end: int = 8, shape: Any = (2,), dtype: Any = "F32") -> dict[str, Any]:
    return {"dtype": dtype, "shape": list(shape) if isinstance(shape, tuple) else shape, "data_offsets": [start, end]}


@pytest.mark.parametrize(("data", "told"), [
    (file({"a": entry()}, size=2**62), "a header of"),
    (file({"a": entry()}, size=150 * 2**20), "a header of"),
    (file({"a": entry(0, 4, (1,)), "b": entry(0, 8)}), "does not lie"),
    (file({"a": entry(4, 8, (1,))}), "does not lie"),
    (file({"a": entry(0, 4, (1,)), "b": entry(5, 8, (1,))}), "does not lie"),
    (file({"a": entry(shape=(2**40, 2**40))}), "does not lie"),
    (file({"a": entry(shape=(2**63,))}), "no usable shape"),
    (file({"a": entry(shape=(-2,))}), "no usable shape"),
    (file({"a": entry(shape=(0,), end=0)}), "no usable shape"),
    (file({"a": entry(shape=())}), "no usable shape"),
    (file({"a": entry(shape=[True])}), "no usable shape"),
    (file({"a": entry(shape="x")}), "no usable shape"),
    (file({"a": entry(0, 16, (4,))}), "does not lie"),
    (file({"a": entry(8, 0)}), "does not lie"),
    (file({"a": entry(dtype="BOOL")}), "is of type 'BOOL'"),
    (file({"a": entry(dtype=None)}), "is of type None"),
    (file({"a": {**entry(), "x": 1}}), "other fields"),
    (file({"a": 1}), "other fields"),
    (file({"__metadata__": {}}), "0 tensors"),
    (file([]), "no object"),
    (file(b'{"a": 1, "a": 2}'), "not strict JSON"),
    (file(b"[" * 100_000), "not strict JSON"),
    (file(b'{"a": 1.5}'), "not strict JSON"),
    (file(b"\xff\xfe"), "not strict JSON"),
    (file({"a": entry()}, bytes(9)), "1 bytes after"),
])
def test_tricks(data: bytes, told: str) -> None:
    with pytest.raises(Unfit, match=told):
        read_tensors(data)


def test_what_the_library_writes_is_read_and_written_again() -> None:
    arrays = {"b": np.arange(6, dtype="float32").reshape(2, 3), "a": np.ones((1, 3), "float16")}
    out = io.BytesIO()
    write_tensors(out, read_tensors(save(arrays, metadata={"x": "y"})))
    again = load(out.getvalue())
    assert again.keys() == arrays.keys() and all(np.array_equal(again[n], arrays[n]) for n in arrays)


@pytest.mark.parametrize(("word", "finite", "zero"), [
    (0x7F80, False, False), (0xFF80, False, False), (0x7FC0, False, False), (0x7F7F, True, False),
    (0x0000, True, True), (0x8000, True, True), (0x0001, True, False)])
def test_bfloat16(word: int, finite: bool, zero: bool) -> None:
    tensor = Tensor("BF16", (1,), memoryview(struct.pack("<H", word)))
    assert is_finite(tensor) is finite and is_zero(tensor) is zero


@given(st.binary(max_size=400))
def test_any_bytes(data: bytes) -> None:
    with pytest.raises(Unfit):
        read_tensors(data)


@given(st.binary(max_size=60), st.integers(0, 80))
def test_a_spoiled_file_is_unfit_or_whole(noise: bytes, place: int) -> None:
    good = file({"a": entry(), "__metadata__": {"format": "pt"}})
    spoilt = good[:place] + noise + good[place + len(noise):]
    try:
        tensors = read_tensors(spoilt)
    except Unfit:
        return
    assert sum(len(t.data) for t in tensors.values()) + 8 <= len(spoilt)
