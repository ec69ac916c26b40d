"""The challenge as the node computes it: fill memory by exact int8 products, digest it under a fresh key, open rows.

Runs inside the environment as a child of the agent: `payload.zip challenge`, frames on standard input and output, one
request after the other; what was filled stays in memory between them. The transcript that both sides follow, to the
byte, stands in the laptop's copy (orchestrator/node/challenge.py) and in tests/golden/challenge/:

    B = SHAKE-128(seed) as n x n int8;  row i of X_b = B[(i + b) mod n] xor SHAKE-128(seed || "block" || u32be(b))
    fill: steps times C = X . B, X = Q(C) with Q(C) = int8 of (C >> 7) & 255
    digest: w = SHAKE-128(key || "w") as n x 8 int8, d_b = X_b . w; Merkle over SHA-256(0x00 || u32be(b) || d_b);
            next key = SHA-256(key || root)

A row of X depends on its own first row only, so what is opened is computed again instead of kept. With a GPU the work
is done by torch, else by numpy, else (n <= 64) by Python itself.
"""
from __future__ import annotations

import hashlib
import os
import struct
from pathlib import Path
from typing import Any, Protocol

from remote_payload import frames
from remote_payload.frames import Frame, Refused

WIDTH = 8
LIMITS = {"n": 16384, "steps": 64, "blocks": 4096}
PLAIN_MAX = 64
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


def main(argv: list[str]) -> int:
    """Answers frames until the stream ends."""
    channel = os.dup(1)
    os.dup2(2, 1)
    session, take = Session(), frames.taker(0)
    while True:
        asked = frames.read(take)
        if asked is None:
            return 0
        try:
            header, body = session.answer(asked.header)
            frames.send(channel, Frame(frames.REPLY, header, body))
        except Refused as no:
            frames.send(channel, Frame(frames.REFUSED, {"code": no.code, "detail": no.detail}))
        except (KeyError, TypeError, ValueError):
            frames.send(channel, Frame(frames.REFUSED, {"code": "bad-request", "detail": "not a stage that can be"}))
        except MemoryError:
            frames.send(channel, Frame(frames.REFUSED, {"code": "unsuitable", "detail": "not enough memory"}))


class Session:
    """One fill and what is asked about it."""

    def __init__(self) -> None:
        self.field: Field | None = None
        self.blocks = 0
        self.passes: list[list[bytes]] = []  # the digest vectors of every pass, by block

    def answer(self, ask: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        stage = ask.get("stage")
        if stage == "fill":
            return self._fill(ask), b""
        if self.field is None:
            raise Refused("bad-request", "nothing was filled yet")
        if stage == "digest":
            return {"roots": self._digest(bytes.fromhex(ask["key"]), ask["passes"])}, b""
        if stage == "open":
            return {}, self._open(ask["rows"])
        if stage == "vectors":
            return self._vectors(ask["block"], ask["pass"])
        raise Refused("bad-request", "not a stage of the challenge")

    def _fill(self, ask: dict[str, Any]) -> dict[str, Any]:
        for name, most in LIMITS.items():
            if not isinstance(ask.get(name), int) or not 1 <= ask[name] <= most:
                raise Refused("bad-request", f"{name} is not a number that can be")
        if ask["n"] % 8:
            raise Refused("bad-request", "n is not a multiple of 8")
        self.blocks, self.passes = ask["blocks"], []
        self.field = make_field(bytes.fromhex(ask["seed"]), ask["n"], ask["steps"], ask["blocks"])
        return {"device": self.field.device}

    def _digest(self, key: bytes, passes: int) -> list[str]:
        """Roots in hex. Every pass's key needs the root before it."""
        assert self.field is not None
        if not isinstance(passes, int) or not 1 <= passes <= 32:
            raise Refused("bad-request", "passes is not a number that can be")
        roots: list[str] = []
        for _ in range(passes):
            w = hashlib.shake_128(key + b"w").digest(self._n * WIDTH)
            vectors = [self.field.vector(block, w) for block in range(self.blocks)]
            self.passes.append(vectors)
            root = levels(vectors)[-1][0]
            roots.append(root.hex())
            key = hashlib.sha256(key + root).digest()
        return roots

    @property
    def _n(self) -> int:
        return int(self.field.n)  # type: ignore[union-attr]

    def _open(self, rows: Any) -> bytes:
        assert self.field is not None
        opened = b""
        for block, row in rows:
            if not (0 <= block < self.blocks and 0 <= row < self._n):
                raise Refused("bad-request", "there is no such row")
            opened += self.field.open(block, row)
            if len(opened) > frames.BODY_MAX_DOWN:
                raise Refused("bad-request", "too many rows for one answer")
        return opened

    def _vectors(self, block: int, turn: int) -> tuple[dict[str, Any], bytes]:
        if not (0 <= turn < len(self.passes) and 0 <= block < self.blocks):
            raise Refused("bad-request", "there is no such vector")
        path, index = [], block
        for level in levels(self.passes[turn])[:-1]:
            if index ^ 1 < len(level):
                path.append(level[index ^ 1].hex())
            index //= 2
        return {"path": path}, self.passes[turn][block]


def levels(vectors: list[bytes]) -> list[list[bytes]]:
    """The Merkle tree from the leaves up; an odd last node moves up unchanged."""
    tree = [[hashlib.sha256(b"\x00" + struct.pack(">I", b) + vector).digest() for b, vector in enumerate(vectors)]]
    while len(tree[-1]) > 1:
        below = tree[-1]
        pairs = [below[i:i + 2] for i in range(0, len(below), 2)]
        tree.append([hashlib.sha256(b"\x01" + p[0] + p[1]).digest() if len(p) == 2 else p[0] for p in pairs])
    return tree


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
