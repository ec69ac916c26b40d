"""Runs one challenge over one channel and says, numbered, what it showed. The mathematics is in challenge.py.

It must not keep anything between two calls, nor claim more than it saw: on which device the work was done is the node's
word, and memory and speed of a GPU are left unchecked, or it is said why they do not apply.
"""
from __future__ import annotations

import hashlib
import time
from dataclasses import dataclass, field

from ..domain.document import Json
from ..domain.evidence import Check
from . import challenge
from .client import Agent
from .frames import BODY_MAX_DOWN, FrameError, take

TEXTS = {1: "filled and answered in time", 2: "the opened digests lead to the committed roots",
         3: "every opened row was computed", 4: "the computed rows are the digested ones",
         5: "memory and speed of the GPU"}
SECONDS = 300
DEVICES = ("cpu", "cuda")


@dataclass
class Proof:
    """What one challenge showed, growing while it runs."""

    task: challenge.Task
    rows: tuple[tuple[int, int], ...] = ()
    roots: list[bytes] = field(default_factory=list)
    device: str = ""
    milliseconds: dict[str, int] = field(default_factory=dict)
    openings: dict[str, str] = field(default_factory=dict)
    wrong: dict[int, str] = field(default_factory=dict)

    def checks(self, gpu: Check) -> tuple[Check, ...]:
        where = "on the CPU: not a GPU" if self.device == "cpu" else "on the GPU, as the node says"
        first = Check(1, f"{TEXTS[1]}, {where}", 1 not in self.wrong, self.wrong.get(1, ""))
        rest = tuple(Check(n, TEXTS[n], n not in self.wrong, self.wrong.get(n, "")) for n in (2, 3, 4))
        return (first, *rest, gpu)

    @property
    def unmeasured(self) -> str:
        """Why memory and speed of the GPU count as not checked: what this challenge would have shown, and did not."""
        t = self.task
        if self.device == "cpu":
            return "this challenge ran on the CPU; nothing of the GPU was tried"
        return (f"{t.blocks * t.n * t.n >> 10} KiB were filled and the sums checked, on a GPU as the node says; "
                "more memory and the speed were not tried, and a CPU could have answered the same")

    def transcript(self) -> Json:
        """Everything needed to see what was asked and what came back; big openings by digest."""
        t = self.task
        return {"n": t.n, "steps": t.steps, "blocks": t.blocks, "passes": t.passes, "seed": t.seed.hex(),
                "key": t.key.hex(), "device": self.device, "milliseconds": self.milliseconds,
                "roots": [r.hex() for r in self.roots], "rows": [list(r) for r in self.rows],
                "openings": self.openings, "wrong": {str(n): why for n, why in self.wrong.items()}}


def prove(agent: Agent, sizes: tuple[int, int, int, int, int]) -> Proof:
    """Fill, digest, open, verify. Raises Refusal("unsuitable") where the node cannot compute this size."""
    proof = Proof(challenge.Task(*sizes))
    t = proof.task
    started = time.monotonic()
    said = agent.challenge({"stage": "fill", "seed": t.seed.hex(), "n": t.n, "steps": t.steps, "blocks": t.blocks},
                           SECONDS).header
    proof.device = take(said, "device", str)
    if proof.device not in DEVICES:
        raise FrameError("a device that is not in the list")
    proof.milliseconds["fill"] = _since(started)
    started = time.monotonic()
    roots = take(agent.challenge({"stage": "digest", "key": t.key.hex(), "passes": t.passes}, SECONDS).header,
                 "roots", list)
    proof.milliseconds["digest"] = _since(started)
    proof.roots = [_hash(root) for root in roots]
    if len(proof.roots) != t.passes:
        raise FrameError("another number of roots")
    proof.rows = challenge.pick_rows(t)
    _verify(agent, proof)
    return proof


def _verify(agent: Agent, proof: Proof) -> None:
    verifier, t = challenge.Verifier(proof.task), proof.task
    keys = challenge.keys_of(t, proof.roots)
    vectors = {(block, turn): _vector(agent, proof, verifier, block, turn)
               for block in sorted({b for b, _ in proof.rows}) for turn in range(t.passes)}
    size = t.steps * t.n * 4
    for (block, row), opened in zip(proof.rows, _open(agent, proof, size), strict=True):
        last, why = verifier.row(block, row, opened)
        if last is None:
            proof.wrong.setdefault(3, why or "")
            continue
        for turn in range(t.passes):
            if problem := verifier.digest(row, last, keys[turn], vectors[block, turn]):
                proof.wrong.setdefault(4, problem)


def _vector(agent: Agent, proof: Proof, verifier: challenge.Verifier, block: int, turn: int) -> bytes:
    reply = agent.challenge({"stage": "vectors", "block": block, "pass": turn})
    path = [_hash(p) for p in take(reply.header, "path", list)]
    proof.openings[f"vector {block}/{turn}"] = hashlib.sha256(reply.body).hexdigest()
    if problem := verifier.vector(block, proof.roots[turn], reply.body, path):
        proof.wrong.setdefault(2, problem)
    return reply.body


def _open(agent: Agent, proof: Proof, size: int) -> list[bytes]:
    """The accumulators of every chosen row, `size` bytes each, as many at a time as fit one frame."""
    opened: list[bytes] = []
    at_once = max(1, BODY_MAX_DOWN // size)
    for first in range(0, len(proof.rows), at_once):
        some = proof.rows[first:first + at_once]
        body = agent.challenge({"stage": "open", "rows": [list(r) for r in some]}).body
        if len(body) != size * len(some):
            raise FrameError("openings of another size")
        opened += [body[i * size:(i + 1) * size] for i in range(len(some))]
    for (block, row), data in zip(proof.rows, opened, strict=True):
        proof.openings[f"row {block}/{row}"] = hashlib.sha256(data).hexdigest()
    return opened


def _hash(text: object) -> bytes:
    try:
        raw = bytes.fromhex(str(text))
    except ValueError as error:
        raise FrameError("not a hash") from error
    if len(raw) != 32:
        raise FrameError("not a hash")
    return raw


def _since(started: float) -> int:
    return int((time.monotonic() - started) * 1000)
