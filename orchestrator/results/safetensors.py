"""A safetensors file from a stranger, read without trust, and one written anew.

Standard library and numpy; the format is 8 bytes of length, a JSON header, bytes end to end. Names are judged
elsewhere (lora.py); here sizes, offsets, types and values are. Metadata is dropped.
"""
from __future__ import annotations

import hashlib
import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from typing import BinaryIO

from ..domain.document import canonical, parse
from ..domain.names import Digest

MOST_HEADER = 16 * 2**20
MOST_TENSORS = 20_000
MOST_DIMENSIONS = 4
WIDTH = {"F32": 4, "BF16": 2, "F16": 2}


class Unfit(Exception):
    """What is wrong with a result, in words of ours."""


@dataclass(frozen=True, slots=True)
class Tensor:
    """`data` is a view into the file's bytes, little endian."""

    dtype: str
    shape: tuple[int, ...]
    data: memoryview


def read_tensors(file: bytes) -> dict[str, Tensor]:
    """Every tensor by name, their bytes covering the file without a hole. Unfit for anything else."""
    if len(file) < 8:
        raise Unfit("shorter than a header")
    size, = struct.unpack("<Q", file[:8])
    if size > min(MOST_HEADER, len(file) - 8):
        raise Unfit(f"a header of {size} bytes")
    body = memoryview(file)[8 + size:]
    entries = sorted(_entries(file[8:8 + size]), key=lambda e: e[3])
    tensors, end = {}, 0
    for name, dtype, shape, start, stop in entries:
        if start != end or stop - start != math.prod(shape) * WIDTH[dtype] or stop > len(body):
            raise Unfit(f"{ascii(name)[:80]} does not lie where its shape says")
        tensors[name] = Tensor(dtype, shape, body[start:stop])
        end = stop
    if end != len(body):
        raise Unfit(f"{len(body) - end} bytes after the last tensor")
    return tensors


def _entries(header: bytes) -> list[tuple[str, str, tuple[int, ...], int, int]]:
    try:
        tree = parse(header, depth=4, values=12 * MOST_TENSORS)
    except ValueError:                   # also what is not UTF-8, and JSONDecodeError
        raise Unfit("a header that is not strict JSON") from None
    if not isinstance(tree, dict):
        raise Unfit("a header that is no object")
    tree.pop("__metadata__", None)
    if not 0 < len(tree) <= MOST_TENSORS:
        raise Unfit(f"{len(tree)} tensors")
    return [_entry(name, entry) for name, entry in tree.items()]


def _entry(name: str, entry: object) -> tuple[str, str, tuple[int, ...], int, int]:
    shown = ascii(name)[:80]
    if not isinstance(entry, dict) or entry.keys() != {"dtype", "shape", "data_offsets"}:
        raise Unfit(f"{shown} has other fields than a tensor")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in WIDTH:
        raise Unfit(f"{shown} is of type {ascii(dtype)[:20]}, one of {', '.join(WIDTH)} is expected")
    if not _counts(shape) or not 0 < len(shape) <= MOST_DIMENSIONS or not all(shape):
        raise Unfit(f"{shown} has no usable shape")
    if not _counts(offsets) or len(offsets) != 2:
        raise Unfit(f"{shown} has no usable offsets")
    return name, dtype, tuple(shape), offsets[0], offsets[1]


def _counts(value: object) -> bool:
    return isinstance(value, list) and all(type(n) is int and 0 <= n < 2**48 for n in value)


def is_finite(tensor: Tensor) -> bool:
    """No NaN and no infinity in it."""
    import numpy as np
    if tensor.dtype == "BF16":           # numpy has no bfloat16: all exponent bits set is NaN or infinity
        return not bool(((np.frombuffer(tensor.data, "<u2") & 0x7F80) == 0x7F80).any())
    return bool(np.isfinite(np.frombuffer(tensor.data, "<f4" if tensor.dtype == "F32" else "<f2")).all())


def is_zero(tensor: Tensor) -> bool:
    """Nothing but zeros, of either sign."""
    import numpy as np
    words = np.frombuffer(tensor.data, "<u4" if tensor.dtype == "F32" else "<u2")
    return not bool((words << 1).any())


def write_tensors(out: BinaryIO, tensors: Mapping[str, Tensor]) -> Digest:
    """A file of these tensors, wide types first and then by name, with the one metadata that loaders ask for."""
    order = sorted(tensors, key=lambda name: (-WIDTH[tensors[name].dtype], name))
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    end = 0
    for name in order:
        tensor = tensors[name]
        header[name] = {"dtype": tensor.dtype, "shape": list(tensor.shape),
                        "data_offsets": [end, end + len(tensor.data)]}
        end += len(tensor.data)
    text = canonical(header)
    text += b" " * (-len(text) % 8)
    whole = hashlib.sha256()
    pieces: list[bytes | memoryview] = [struct.pack("<Q", len(text)), text]
    for piece in pieces + [tensors[name].data for name in order]:
        whole.update(piece)
        out.write(piece)
    return Digest("sha256:" + whole.hexdigest())
