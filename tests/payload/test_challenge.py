"""The challenge as the node computes it: the golden vector, every way of computing it, and the whole of it over frames."""
from __future__ import annotations

import json
import subprocess
import sys
import venv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.node import challenge as laptop
from remote_payload.challenge import Session, levels
from remote_payload.fields import NumpyField, PlainField, TorchField
from remote_payload.frames import Refused as Refusal
from tests.payload.talk import Node, Refused, a_node

pytestmark = pytest.mark.noleak
GOLDEN = json.loads((Path(__file__).resolve().parents[1] / "golden" / "challenge" / "small.json").read_text())
SIZES = (GOLDEN["n"], GOLDEN["steps"], GOLDEN["blocks"])


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with a_node(tmp_path / "home") as node:
        yield node


@pytest.mark.parametrize("kind", [NumpyField, PlainField])
def test_the_golden_vector(kind: Any) -> None:
    session = Session()
    session.field, session.blocks = kind(bytes.fromhex(GOLDEN["seed"]), *SIZES), GOLDEN["blocks"]
    roots = session.answer({"stage": "digest", "key": GOLDEN["key"], "passes": GOLDEN["passes"]})[0]["roots"]
    assert roots == GOLDEN["roots"]
    assert session.answer({"stage": "open", "rows": GOLDEN["rows"]})[1].hex() == GOLDEN["accumulators"]
    wanted = GOLDEN["vector"]
    header, body = session.answer({"stage": "vectors", "block": wanted["block"], "pass": wanted["pass"]})
    assert header["path"] == wanted["path"] and body.hex() == wanted["bytes"]


@pytest.mark.training
def test_torch_computes_the_same(trainer_python: Path) -> None:
    """On a CPU device here; the calls are those that run on a GPU."""
    script = ("import sys;sys.path.insert(0,sys.argv[1]);from remote_payload.fields import *\n"
              "a,b=(k(b'0123456789abcdef',64,3,2,*r) for k,r in ((TorchField,('cpu',)),(NumpyField,())))\n"
              "w=bytes(range(256))*2\n"
              "assert a.vector(1,w)==b.vector(1,w) and a.open(1,7)==b.open(1,7)")
    root = str(Path(__file__).resolve().parents[2])
    done = subprocess.run([trainer_python, "-c", script, root], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-500:]


def test_the_tree_moves_an_odd_last_node_up() -> None:
    assert [len(level) for level in levels([b"a", b"b", b"c", b"d", b"e"])] == [5, 3, 2, 1]
    assert levels([b"a", b"b", b"c"])[1][1] == levels([b"a", b"b", b"c"])[0][2]


@pytest.mark.parametrize("ask", [
    {"stage": "fill", "seed": "00", "n": 12, "steps": 1, "blocks": 1}, {"stage": "fill", "seed": "00", "n": 1 << 20,
     "steps": 1, "blocks": 1}, {"stage": "digest"}, {"stage": "open", "rows": [[0, 0]]}, {}])
def test_what_cannot_be_is_refused(ask: dict[str, Any]) -> None:
    with pytest.raises(Refusal):
        Session().answer(ask)


def prove(node: Node, task: laptop.Task) -> None:
    """The laptop's own verifier over the agent's answers."""
    agent = node.armed()
    node.install(agent)
    said = agent.ask("challenge", {"stage": "fill", "seed": task.seed.hex(), "n": task.n, "steps": task.steps,
                                   "blocks": task.blocks}).header
    assert said["device"] == "cpu"
    roots = [bytes.fromhex(root) for root in agent.ask(
        "challenge", {"stage": "digest", "key": task.key.hex(), "passes": task.passes}).header["roots"]]
    verifier, keys = laptop.Verifier(task), laptop.keys_of(task, roots)
    rows = laptop.pick_rows(task)
    opened = agent.ask("challenge", {"stage": "open", "rows": [list(row) for row in rows]}).body
    size = task.steps * task.n * 4
    for number, (block, row) in enumerate(rows):
        last, wrong = verifier.row(block, row, opened[number * size:(number + 1) * size])
        assert wrong is None and last is not None
        for turn in range(task.passes):
            reply = agent.ask("challenge", {"stage": "vectors", "block": block, "pass": turn})
            path = [bytes.fromhex(step) for step in reply.header["path"]]
            assert verifier.vector(block, roots[turn], reply.body, path) is None
            assert verifier.digest(row, last, keys[turn], reply.body) is None


def test_the_laptop_believes_what_numpy_computed(node: Node) -> None:
    node.prepare_environment()
    prove(node, laptop.Task(128, 4, 5, 2, 6))


def test_without_numpy_small_sizes_still_work(node: Node, tmp_path: Path) -> None:
    venv.create(tmp_path / "bare", with_pip=False)
    node.prepare_environment(str(tmp_path / "bare" / "bin" / "python"))
    prove(node, laptop.Task(*laptop.PLAIN_TASK))
    with pytest.raises(Refused, match="unsuitable"):
        node.connect().ask("challenge", {"stage": "fill", "seed": "00" * 16, "n": 128, "steps": 1, "blocks": 1})


def test_nothing_filled_nothing_told(node: Node) -> None:
    node.prepare_environment()
    agent = node.armed()
    with pytest.raises(Refused, match="unsuitable"):
        agent.ask("challenge", {"stage": "fill", "seed": "00" * 16, "n": 8, "steps": 1, "blocks": 1})
    with pytest.raises(Refused, match="bad-request"):
        agent.ask("challenge", {"stage": "digest", "key": "00" * 32, "passes": 1})
    node.install(agent)
    agent.ask("challenge", {"stage": "fill", "seed": "00" * 16, "n": 8, "steps": 1, "blocks": 1})
    for broken in ({"stage": "digest"}, {"stage": "digest", "key": "zz", "passes": 1}, {"stage": "open", "rows": [[9, 9]]},
                   {"stage": "open", "rows": 5}, {"stage": "vectors", "block": 0}):
        with pytest.raises(Refused):
            agent.ask("challenge", broken)
        agent.ask("challenge", {"stage": "fill", "seed": "00" * 16, "n": 8, "steps": 1, "blocks": 1})


def test_torch_is_only_looked_for_where_there_is_a_gpu() -> None:
    assert TorchField.device == "cpu" and "torch" not in sys.modules
