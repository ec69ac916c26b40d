"""The challenge: what the node must compute, and how the laptop checks it without a GPU. Pure; numpy only here.

It must not know how the numbers travel (proving.py does that) nor say more than it saw: a node that passes on its
CPU has shown that it computes honestly, not that it has a GPU.

The transcript, exactly (the payload mirrors it; tests/golden/challenge/ holds a vector both sides must meet):

    seed    16 bytes.  n: side of the matrices, a multiple of 8.  T: steps.  N: blocks.  All matrices row-major.
    B       n x n int8  = SHAKE-128(seed).digest(n*n)
    mask_b  n bytes     = SHAKE-128(seed || "block" || u32be(b)).digest(n)
    X_b     n x n int8: row i = B[(i + b) mod n] xor mask_b, byte by byte            (b = 0 … N-1)
    fill    T times:  C = X_b . B  (exact int32),  X_b = Q(C),  Q(C) = int8 of bits 7 to 14: (C >> 7) & 255
    digest  key_0 (32 bytes) comes only after the fill. For pass p = 0 … R-1:
              w_p    n x 8 int8 = SHAKE-128(key_p || "w").digest(n*8)
              d_b    n x 8 int32, little endian = X_b . w_p                            (the block's digest vector)
              leaf_b = SHA-256(0x00 || u32be(b) || bytes of d_b)
              root_p = Merkle root: parent = SHA-256(0x01 || left || right), an odd last node moves up unchanged
              key_{p+1} = SHA-256(key_p || root_p)
    open    rows (b, i) chosen after the last root. Per row, T rows of n int32, little endian: row i of each C of b.
            vectors: d_b of a block and pass, with the sibling hashes from leaf to root (absent siblings left out).

On the wire (verb `challenge`): {"stage":"fill","seed":hex,"n","steps","blocks"} -> {"device":"cpu"|"cuda"}
    {"stage":"digest","key":hex,"passes"} -> {"roots":[hex …]}
    {"stage":"open","rows":[[b,i] …]} -> {} and the accumulators of these rows one after the other (<= 1 MiB)
    {"stage":"vectors","block":b,"pass":p} -> {"path":[hex …]} and the bytes of d_b

The check (Freivalds): a secret r mod p = 2^31-1, B.r once, then for every step  c.r = x.(B.r)  mod p  (a wrong row
passes with 2^-31), Q re-applied here, and the last row's digests compared with the opened, Merkle-proven vectors.
"""
from __future__ import annotations

import hashlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

PRIME = 2**31 - 1
WIDTH = 8                                # columns of w: 32 bytes of digest a row
Array = Any                              # a numpy array; numpy is imported where it is used


@dataclass(frozen=True, slots=True)
class Task:
    """Sizes and seeds of one challenge. `key` stays here until the fill is reported."""

    n: int
    steps: int
    blocks: int
    passes: int
    rows: int
    seed: bytes = field(default_factory=lambda: secrets.token_bytes(16))
    key: bytes = field(default_factory=lambda: secrets.token_bytes(32))


CPU_TASK = (512, 8, 8, 2, 8)             # n, T, N, R, rows: a second or two with numpy
PLAIN_TASK = (64, 4, 4, 2, 8)            # where the environment has no numpy


def pick_rows(task: Task) -> tuple[tuple[int, int], ...]:
    """Random rows (block, row), to be drawn only after the last root is here."""
    draw = secrets.SystemRandom()
    return tuple((draw.randrange(task.blocks), draw.randrange(task.n)) for _ in range(task.rows))


def base_matrix(task: Task) -> Array:
    """B, n x n int8."""
    import numpy as np
    raw = hashlib.shake_128(task.seed).digest(task.n * task.n)
    return np.frombuffer(raw, dtype=np.int8).reshape(task.n, task.n)


def first_row(task: Task, base: Array, block: int, row: int) -> Array:
    """Row `row` of X_block before the first step, n int8."""
    import numpy as np
    mask = hashlib.shake_128(task.seed + b"block" + block.to_bytes(4, "big")).digest(task.n)
    return base[(row + block) % task.n] ^ np.frombuffer(mask, dtype=np.int8)


def quantise(accumulators: Array) -> Array:
    """Q: bits 7 to 14 as int8."""
    import numpy as np
    return ((accumulators >> 7) & 255).astype(np.uint8).view(np.int8)


def weights(task: Task, key: bytes) -> Array:
    """w of one pass, n x 8 int8."""
    import numpy as np
    return np.frombuffer(hashlib.shake_128(key + b"w").digest(task.n * WIDTH), dtype=np.int8).reshape(task.n, WIDTH)


def keys_of(task: Task, roots: Sequence[bytes]) -> list[bytes]:
    """The key of every pass, as the roots the node gave make them."""
    keys = [task.key]
    for root in roots[:-1]:
        keys.append(hashlib.sha256(keys[-1] + root).digest())
    return keys


def leaf(block: int, vector: bytes) -> bytes:
    return hashlib.sha256(b"\x00" + block.to_bytes(4, "big") + vector).digest()


def root_from(block: int, blocks: int, vector: bytes, path: Sequence[bytes]) -> bytes | None:
    """The Merkle root that `vector` and its path lead to; None where the path has the wrong length."""
    node, index, width, rest = leaf(block, vector), block, blocks, list(path)
    while width > 1:
        if index % 2 or index + 1 < width:
            if not rest:
                return None
            other = rest.pop(0)
            pair = other + node if index % 2 else node + other
            node = hashlib.sha256(b"\x01" + pair).digest()
        index, width = index // 2, (width + 1) // 2
    return None if rest else node


class Verifier:
    """Checks the openings of one task. Every method answers None when it holds, else what is wrong."""

    def __init__(self, task: Task) -> None:
        import numpy as np
        self.task, self._base = task, base_matrix(task)
        self._secret = np.array([secrets.randbelow(PRIME) for _ in range(task.n)], dtype=np.int64)
        self._low, self._high = self._secret & 0xFFFF, self._secret >> 16
        self._product = (self._base.astype(np.int64) @ self._secret) % PRIME

    def row(self, block: int, row: int, opened: bytes) -> tuple[Array | None, str | None]:
        """(last row of X, None), or (None, why). `opened`: T x n int32 little endian."""
        import numpy as np
        if len(opened) != self.task.steps * self.task.n * 4:
            return None, f"row {row} of block {block} has {len(opened)} bytes"
        steps = np.frombuffer(opened, dtype="<i4").reshape(self.task.steps, self.task.n).astype(np.int64)
        state = first_row(self.task, self._base, block, row)
        for number, accumulators in enumerate(steps):
            if self._times_secret(accumulators) != int(state.astype(np.int64) @ self._product) % PRIME:
                return None, f"row {row} of block {block} is wrong at step {number}"
            state = quantise(accumulators)
        return state, None

    def _times_secret(self, accumulators: Array) -> int:
        """c.r mod p without leaving int64: r in two halves."""
        return (int(accumulators @ self._low) + (int(accumulators @ self._high) << 16)) % PRIME

    def vector(self, block: int, root: bytes, vector: bytes, path: Sequence[bytes]) -> str | None:
        if len(vector) != self.task.n * WIDTH * 4:
            return f"digest vector of block {block} has {len(vector)} bytes"
        if root_from(block, self.task.blocks, vector, path) != root:
            return f"digest vector of block {block} does not lead to its root"
        return None

    def digest(self, row: int, last: Array, key: bytes, vector: bytes) -> str | None:
        """Does the row's digest, computed here, stand in the vector the node committed to?"""
        import numpy as np
        ours = (last.astype(np.int64) @ weights(self.task, key).astype(np.int64)).astype("<i4").tobytes()
        theirs = vector[row * WIDTH * 4:(row + 1) * WIDTH * 4]
        return None if ours == theirs else f"row {row} is not what the digest was made of"
