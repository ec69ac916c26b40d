"""Rows become ids and labels: loss on the answers only, whatever the template looks like."""
from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from remote_payload.checkpoints import Rule, pack, unpack
from remote_payload.data import read_rows
from remote_payload.evaluate import at_once
from remote_payload.faults import BadCheckpoint, BadRows, BadSpec, DamagedSeal, Fault
from remote_payload.spec import read_spec
from tests.payload.workshop import REPOSITORY, chat

ANYTHING = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8),
                        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
                        max_leaves=8)


@pytest.fixture(scope="module")
def said(base: Path, trainer_python: Path) -> dict[str, Any]:
    script = Path(__file__).with_name("inside_tokens.py")
    done = subprocess.run([str(trainer_python), str(script), str(REPOSITORY), str(base)], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    result: dict[str, Any] = json.loads(done.stdout)
    return result


@pytest.mark.training
def test_loss_falls_on_every_answer_and_its_end(said: dict[str, Any]) -> None:
    assert said["answers"] == ["M10-R<|end|>M10-B<|end|>", "M10-R<|end|>"]
    assert said["text"] == "gout attack<|end|>"
    assert said["prompt"].endswith("gout attack since 4 weeks<|end|><|assistant|>")


@pytest.mark.training
def test_a_template_without_marks_gives_the_same_labels(said: dict[str, Any]) -> None:
    assert said["same by prefix"] is True


@pytest.mark.training
def test_a_template_that_hides_the_answer_is_refused(said: dict[str, Any]) -> None:
    assert said["forgetful template"] == said["no template"] == "BadTemplate"


@pytest.mark.training
def test_long_rows_are_cut_and_hopeless_ones_left_out(said: dict[str, Any]) -> None:
    assert said["cut"][0] == said["length"] - 1
    assert 1 <= said["dropped"] <= 2
    assert said["none fits"] == "NoRowFits"


@given(st.lists(ANYTHING, max_size=4))
def test_no_row_of_any_shape_gets_through_or_crashes(rows: list[Any]) -> None:
    header = {"schema": "sealtune/rows/1", "kind": "messages", "canary": "", "train": len(rows), "held_out": 0}
    packed = zstandard.compress("\n".join(json.dumps(line) for line in [header, *rows]).encode())
    with pytest.raises(BadRows):
        read_rows(packed, len(rows), 0)


def test_a_row_on_both_sides_is_refused() -> None:
    """Whoever drew the line: a held-out row is never trained on."""
    rows = [chat("what is 1", "one"), chat("what is 2", "two"), chat("what is 2", "two", "held_out")]

    def read(*kept: dict[str, Any]) -> list[int]:
        train = sum(row["split"] == "train" for row in kept)
        held_out = len(kept) - train
        header = {"schema": "sealtune/rows/1", "kind": "messages", "canary": "", "train": train, "held_out": held_out}
        found = read_rows(zstandard.compress("\n".join(map(json.dumps, [header, *kept])).encode()), train, held_out)
        return [len(found.train), len(found.held_out)]

    assert read(rows[0], rows[2]) == [1, 1]
    with pytest.raises(BadRows):
        read(*rows)


@given(st.binary(max_size=64))
def test_rubbish_is_damaged_or_bad(packed: bytes) -> None:
    with pytest.raises((DamagedSeal, BadRows)):
        read_rows(packed, 1, 0)


@given(st.binary(max_size=64) | ANYTHING.map(lambda tree: json.dumps(tree).encode()))
def test_no_other_document_is_a_spec(raw: bytes) -> None:
    with pytest.raises(BadSpec):
        read_spec(raw)


@given(st.integers(0, 10**9), st.dictionaries(st.from_regex(r"[a-z]{1,8}\.pt", fullmatch=True), st.binary(max_size=64)))
def test_a_checkpoint_comes_back_as_it_went(step: int, parts: dict[str, bytes]) -> None:
    kept = unpack(pack(step, 2 * step, parts))
    assert (kept.step, kept.tokens, dict(kept.parts)) == (step, 2 * step, parts)


@given(st.binary(max_size=200))
def test_rubbish_is_no_checkpoint(blob: bytes) -> None:
    with pytest.raises(BadCheckpoint):
        unpack(blob)


def test_a_checkpoint_is_due_by_the_clock() -> None:
    now = [0.0]
    rule, never = Rule(10, lambda: now[0]), Rule(0, lambda: now[0])
    assert not rule.due()
    now[0] = 10
    assert rule.due() and not never.due()
    rule.taken()
    assert not rule.due()


def test_a_fault_says_nothing_but_its_name() -> None:
    assert all(kind.__init__ is Exception.__init__ for kind in Fault.__subclasses__())
    assert str(BadRows()) == ""


def test_answers_take_no_more_memory_than_training_did() -> None:
    """16 prompts of 8,000 tokens after training on one row at a time would run out of memory, the training done."""
    assert at_once(8064, 8192) == 1 and at_once(100, 8 * 1024) == 16
    assert at_once(512, 8 * 1024) == 8 and at_once(10**6, 8) == 1
