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
from typing import Any

from remote_payload import frames
from remote_payload.fields import WIDTH, Field, make_field
from remote_payload.frames import Frame, Refused

LIMITS = {"n": 16384, "steps": 64, "blocks": 4096}


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
