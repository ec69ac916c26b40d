"""The challenge's memory, filled by exact int8 products: with a GPU by torch, else by numpy, else by Python itself.

All three give the same bytes; see challenge.py for what is computed. A row of X depends on its own first row only, so
what is opened is computed again instead of kept.
"""
from __future__ import annotations

import hashlib
import struct
from pathlib import Path
from typing import Any, Protocol

from remote_payload.frames import Refused

WIDTH = 8                                # columns of w
PLAIN_MAX = 64                           # largest n without numpy
GPU = Path("/proc/driver/nvidia/gpus")


class Field(Protocol):
    """The filled memory."""

    device: str

    def vector(self, block: int, w: bytes) -> bytes:
        """X_block . w as n x 8 int32, little endian. w: n x 8 int8."""
        ...

    def open(self, block: int, row: int) -> bytes:
        """The accumulators of one row: steps x n int32, little endian."""
        ...


def first_rows(seed: bytes, base: bytes, n: int, block: int) -> bytes:
    """X_block before the first step, n x n bytes."""
    mask = int.from_bytes(hashlib.shake_128(seed + b"block" + struct.pack(">I", block)).digest(n), "big")
    rows = []
    for row in range(n):
        start = (row + block) % n * n
        rows.append((int.from_bytes(base[start:start + n], "big") ^ mask).to_bytes(n, "big"))
    return b"".join(rows)


def make_field(seed: bytes, n: int, steps: int, blocks: int) -> Field:
    """The strongest that this node has. Refused unsuitable when there is nothing for this size."""
    if GPU.is_dir():
        try:
            import torch
            if torch.cuda.is_available():
                return TorchField(seed, n, steps, blocks, "cuda")
        except ImportError:
            pass                         # an environment without torch computes on the CPU, and says so
    try:
        import numpy  # noqa: F401  only whether it is there
    except ImportError:
        if n > PLAIN_MAX:
            raise Refused("unsuitable", f"no numpy here: n is {PLAIN_MAX} at most") from None
        return PlainField(seed, n, steps, blocks)
    return NumpyField(seed, n, steps, blocks)


class NumpyField:
    """Products in float64, which are exact: every sum stays far below 2^53."""

    device = "cpu"

    def __init__(self, seed: bytes, n: int, steps: int, blocks: int) -> None:
        import numpy
        self.np, self.n, self.steps, self._seed = numpy, n, steps, seed
        self._raw = hashlib.shake_128(seed).digest(n * n)
        self._base = self._matrix(self._raw).astype(numpy.float64)
        self._states = [self._fill(first_rows(seed, self._raw, n, block)) for block in range(blocks)]

    def _matrix(self, raw: bytes) -> Any:
        return self.np.frombuffer(raw, dtype=self.np.int8).reshape(-1, self.n)

    def _times(self, state: Any) -> Any:
        return (state.astype(self.np.float64) @ self._base).astype("<i4")

    def _quantise(self, sums: Any) -> Any:
        return ((sums >> 7) & 255).astype(self.np.uint8).view(self.np.int8)

    def _fill(self, raw: bytes) -> Any:
        state = self._matrix(raw)
        for _ in range(self.steps):
            state = self._quantise(self._times(state))
        return state

    def vector(self, block: int, w: bytes) -> bytes:
        weights = self.np.frombuffer(w, dtype=self.np.int8).reshape(self.n, WIDTH).astype(self.np.float64)
        return bytes((self._states[block].astype(self.np.float64) @ weights).astype("<i4").tobytes())

    def open(self, block: int, row: int) -> bytes:
        n = self.n
        first = self._matrix(first_rows(self._seed, self._raw, n, block)[row * n:(row + 1) * n])
        opened, state = [], first
        for _ in range(self.steps):
            sums = self._times(state)
            opened.append(sums.tobytes())
            state = self._quantise(sums)
        return b"".join(opened)


class TorchField(NumpyField):
    """The fill on the device; what is opened is computed beside it, where it costs little."""

    def __init__(self, seed: bytes, n: int, steps: int, blocks: int, device: str) -> None:
        import torch
        self.torch, self.device = torch, device
        raw = hashlib.shake_128(seed).digest(n * n)
        self._wide = torch.frombuffer(bytearray(raw), dtype=torch.int8).reshape(n, n).to(device)
        super().__init__(seed, n, steps, blocks)

    def _fill(self, raw: bytes) -> Any:
        torch = self.torch
        state = torch.frombuffer(bytearray(raw), dtype=torch.int8).reshape(self.n, self.n).to(self.device)
        for _ in range(self.steps):
            sums = torch._int_mm(state, self._wide)
            state = ((sums >> 7) & 255).to(torch.uint8).view(torch.int8)
        return state

    def vector(self, block: int, w: bytes) -> bytes:
        torch = self.torch
        weights = torch.frombuffer(bytearray(w), dtype=torch.int8).reshape(self.n, WIDTH).to(self.device)
        return bytes(torch._int_mm(self._states[block], weights).cpu().numpy().astype("<i4").tobytes())


class PlainField:
    """The same without any library, for small sizes: rows as lists of numbers."""

    device = "cpu"

    def __init__(self, seed: bytes, n: int, steps: int, blocks: int) -> None:
        self.n, self.steps = n, steps
        raw = hashlib.shake_128(seed).digest(n * n)
        base = [_signed(raw[i * n:(i + 1) * n]) for i in range(n)]
        self._columns = [list(column) for column in zip(*base)]  # noqa: B905  Python 3.8
        self._firsts = [first_rows(seed, raw, n, block) for block in range(blocks)]
        self._states = [[self._run(self._first(block, row))[1] for row in range(n)] for block in range(blocks)]

    def _first(self, block: int, row: int) -> list[int]:
        return _signed(self._firsts[block][row * self.n:(row + 1) * self.n])

    def _run(self, state: list[int]) -> tuple[list[int], list[int]]:
        """(all sums of all steps, the last state) of one row."""
        opened: list[int] = []
        for _ in range(self.steps):
            sums = [sum(a * b for a, b in zip(state, column)) for column in self._columns]  # noqa: B905
            opened += sums
            state = _signed(bytes((s >> 7) & 255 for s in sums))
        return opened, state

    def vector(self, block: int, w: bytes) -> bytes:
        columns = [_signed(w[c::WIDTH]) for c in range(WIDTH)]
        sums = [sum(a * b for a, b in zip(state, column)) for state in self._states[block]  # noqa: B905
                for column in columns]
        return struct.pack(f"<{len(sums)}i", *sums)

    def open(self, block: int, row: int) -> bytes:
        opened = self._run(self._first(block, row))[0]
        return struct.pack(f"<{len(opened)}i", *opened)


def _signed(raw: bytes) -> list[int]:
    return list(struct.unpack(f"{len(raw)}b", raw))
