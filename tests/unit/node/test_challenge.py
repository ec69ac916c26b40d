"""The challenge: the golden vector, an honest node, and the ways to cheat it."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.node.challenge import Task, Verifier
from orchestrator.node.client import Agent
from orchestrator.node.driver import gpu_check
from orchestrator.node.frames import Frame, FrameError
from orchestrator.node.probes import rules, smi, system
from orchestrator.node.proving import Proof, prove
from tests.fakes.challenger import Challenger

GOLDEN = json.loads((Path(__file__).parents[2] / "golden" / "challenge" / "small.json").read_text())
SIZES = (64, 4, 4, 2, 8)


class NodeSide(Agent):
    """Answers the four stages out of a Challenger, without a channel."""

    def __init__(self, skip: float = 0.0, spoil: str = "", device: str = "cpu") -> None:
        self._skip, self._spoil, self._device = skip, spoil, device

    def challenge(self, header, seconds=300):  # type: ignore[no-untyped-def]
        if header["stage"] == "fill":
            self._task = Task(header["n"], header["steps"], header["blocks"], 0, 0, bytes.fromhex(header["seed"]), b"")
            self._does = Challenger(self._task, self._skip)
            return Frame(137, {"device": self._device})
        if header["stage"] == "digest":
            task = Task(self._task.n, self._task.steps, self._task.blocks, header["passes"], 0, self._task.seed,
                        bytes.fromhex(header["key"]))
            self._does.task = task
            roots = [r.hex() for r in self._does.digest()]
            return Frame(137, {"roots": roots[1:] if self._spoil == "roots" else roots})
        if header["stage"] == "open":
            body = bytearray(self._does.open([tuple(r) for r in header["rows"]]))
            if self._spoil == "one off":
                body[0] ^= 1
            return Frame(137, {}, bytes(body[1:] if self._spoil == "short" else body))
        path, vector = self._does.vector(header["block"], header["pass"])
        if self._spoil == "vector":
            vector = bytes(len(vector))
        return Frame(137, {"path": [p.hex() for p in path]}, vector)


CARD = smi.Gpu("NVIDIA GeForce RTX 4090", "", "", "", 24564, 0, False, False, 0, 0)
ONE_CARD = rules.Views(smi.Smi("570.86", "12.8", (CARD,)), "", system.Python("3.11"), {})


@pytest.mark.parametrize(("device", "first", "last"), [
    ("cpu", "on the CPU: not a GPU", "this challenge ran on the CPU; nothing of the GPU was tried"),
    ("cuda", "on the GPU, as the node says", "16 KiB were filled and the sums checked, on a GPU as the node says; more "
                                             "memory and the speed were not tried, and a CPU could have answered the same")])
def test_what_was_checked_of_a_gpu_and_what_was_not(device: str, first: str, last: str) -> None:
    proof = prove(NodeSide(device=device), SIZES)
    checks = proof.checks(gpu_check(ONE_CARD, proof.unmeasured))
    assert checks[0].text.endswith(first) and checks[0].word == "passed"
    assert (checks[-1].number, checks[-1].word, checks[-1].why) == (5, "not checked", last)


def test_a_device_of_the_node_s_own_invention_ends_it() -> None:
    with pytest.raises(FrameError):
        prove(NodeSide(device="cuda, verified"), SIZES)


def failed(proof: Proof) -> set[int]:
    return set(proof.wrong)


def test_golden_vector() -> None:
    task = Task(GOLDEN["n"], GOLDEN["steps"], GOLDEN["blocks"], GOLDEN["passes"], 3,
                bytes.fromhex(GOLDEN["seed"]), bytes.fromhex(GOLDEN["key"]))
    node = Challenger(task)
    assert [r.hex() for r in node.digest()] == GOLDEN["roots"]
    assert node.open([tuple(r) for r in GOLDEN["rows"]]).hex() == GOLDEN["accumulators"]
    path, vector = node.vector(GOLDEN["vector"]["block"], GOLDEN["vector"]["pass"])
    assert ([p.hex() for p in path], vector.hex()) == (GOLDEN["vector"]["path"], GOLDEN["vector"]["bytes"])


def test_golden_vector_verifies() -> None:
    task = Task(GOLDEN["n"], GOLDEN["steps"], GOLDEN["blocks"], GOLDEN["passes"], 3,
                bytes.fromhex(GOLDEN["seed"]), bytes.fromhex(GOLDEN["key"]))
    verifier, opened = Verifier(task), bytes.fromhex(GOLDEN["accumulators"])
    size = len(opened) // len(GOLDEN["rows"])
    for place, (block, row) in enumerate(GOLDEN["rows"]):
        assert verifier.row(block, row, opened[place * size:(place + 1) * size])[1] is None
    v, root = GOLDEN["vector"], bytes.fromhex(GOLDEN["roots"][GOLDEN["vector"]["pass"]])
    path = [bytes.fromhex(p) for p in v["path"]]
    assert verifier.vector(v["block"], root, bytes.fromhex(v["bytes"]), path) is None
    assert verifier.vector(v["block"], root, bytes.fromhex(v["bytes"]), path[:-1]) is not None
    assert verifier.vector(v["block"] - 1, root, bytes.fromhex(v["bytes"]), path) is not None


def test_honest_node_passes() -> None:
    proof = prove(NodeSide(), SIZES)
    assert not failed(proof)
    assert proof.device == "cpu" and len(proof.roots) == 2 and len(proof.rows) == 8


def test_node_that_skips_rows_is_caught() -> None:
    """Half of the rows skipped, eight looked at: missed once in 256; three tries."""
    assert any(3 in failed(prove(NodeSide(skip=0.5), SIZES)) for _ in range(3))


@pytest.mark.parametrize(("spoil", "check"), [("one off", 3), ("vector", 2)])
def test_changed_opening_is_caught(spoil: str, check: int) -> None:
    assert check in failed(prove(NodeSide(spoil=spoil), SIZES))


@pytest.mark.parametrize("spoil", ["roots", "short"])
def test_answers_of_another_size_end_it(spoil: str) -> None:
    with pytest.raises(FrameError):
        prove(NodeSide(spoil=spoil), SIZES)


def test_full_range_accumulators_do_not_overflow() -> None:
    """A hostile node may send any int32: the check stays exact, and false."""
    task = Task(64, 1, 1, 1, 1)
    verdict = Verifier(task).row(0, 0, b"\xff\xff\xff\x7f" * 64)
    assert verdict[0] is None and "wrong at step 0" in (verdict[1] or "")
