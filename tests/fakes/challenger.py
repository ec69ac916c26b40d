"""A node's side of the challenge, written straight from the transcript: the honest one, and one that skips rows."""
from __future__ import annotations

import hashlib
from collections.abc import Sequence
from typing import Any

from orchestrator.node import challenge


class Challenger:
    """Computes what orchestrator/node/challenge.py asks for; `skip` rows of every block are left as noise."""

    def __init__(self, task: challenge.Task, skip: float = 0.0) -> None:
        import numpy as np
        self.task, self.states, self.history = task, [], []
        base = challenge.base_matrix(task)
        wide, noise = base.astype(np.float64), np.random.default_rng(1)
        for block in range(task.blocks):
            state = np.stack([challenge.first_row(task, base, block, i) for i in range(task.n)])
            rows: list[Any] = []
            lazy = noise.random(task.n) < skip
            for _ in range(task.steps):
                product = (state.astype(np.float64) @ wide).astype(np.int32)
                product[lazy] = noise.integers(-2**20, 2**20, size=(int(lazy.sum()), task.n))
                rows.append(product)
                state = challenge.quantise(product)
            self.states.append(state)
            self.history.append(rows)
        self._vectors: list[list[bytes]] = []

    def digest(self) -> list[bytes]:
        import numpy as np
        roots, key = [], self.task.key
        for _ in range(self.task.passes):
            w = challenge.weights(self.task, key).astype(np.int32)
            vectors = [(s.astype(np.int32) @ w).astype("<i4").tobytes() for s in self.states]
            self._vectors.append(vectors)
            roots.append(self._levels(vectors)[-1][0])
            key = hashlib.sha256(key + roots[-1]).digest()
        return roots

    def open(self, rows: Sequence[tuple[int, int]]) -> bytes:
        return b"".join(step[row].astype("<i4").tobytes() for block, row in rows for step in self.history[block])

    def vector(self, block: int, turn: int) -> tuple[list[bytes], bytes]:
        path, index = [], block
        for level in self._levels(self._vectors[turn])[:-1]:
            other = index ^ 1
            if other < len(level):
                path.append(level[other])
            index //= 2
        return path, self._vectors[turn][block]

    @staticmethod
    def _levels(vectors: Sequence[bytes]) -> list[list[bytes]]:
        levels = [[challenge.leaf(b, v) for b, v in enumerate(vectors)]]
        while len(levels[-1]) > 1:
            below = levels[-1]
            pairs = [below[i:i + 2] for i in range(0, len(below), 2)]
            levels.append([hashlib.sha256(b"\x01" + p[0] + p[1]).digest() if len(p) == 2 else p[0] for p in pairs])
        return levels
