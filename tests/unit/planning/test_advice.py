"""Knowledge or behaviour: the advice on sets of answers, word for word, and what holds for every set."""
from __future__ import annotations

import json
from itertools import product
from pathlib import Path

import pytest

from orchestrator.cli.advise import parsed, tree
from orchestrator.planning.advice import QUESTIONS, SOURCES, Answers, advise
from orchestrator.planning.models import must_be_named

SETS = sorted((Path(__file__).parents[2] / "golden" / "advice").glob("*.json"))
SIZES = ("0", "20", "100", "1000", "50000")
EVERY = [Answers(need, facts, cite, int(examples), prompt, answer) for need, facts, cite, prompt, answer, examples
         in product(*(tuple(words) for _, words in QUESTIONS.values()), SIZES)]


@pytest.mark.parametrize("path", SETS, ids=lambda path: path.stem)
def test_the_advice_on_a_set_of_answers(path: Path) -> None:
    page = json.loads(path.read_text())
    words = parsed(page["answers"])
    said = Answers(words["need"], words["facts"], words["cite"], int(words["examples"]), words["prompt"], words["answer"])
    assert tree(said, advise(said), [], None) == page["told"]


def test_there_are_enough_sets_and_every_verdict_is_in_them() -> None:
    verdicts = [json.loads(path.read_text())["told"]["verdict"] for path in SETS]
    assert len(verdicts) >= 12 and set(verdicts) == {"fine-tune", "rag", "both"}


def test_facts_are_looked_up_and_behaviour_is_trained_whatever_else_is_said() -> None:
    for said in EVERY:
        advice = advise(said)
        if said.need in ("knowledge", "both") or said.facts != "never" or said.cite == "yes":
            assert advice.verdict in ("rag", "both"), said
        if said.need in ("behaviour", "both"):
            assert advice.verdict in ("fine-tune", "both"), said
        if said.need == "knowledge":
            assert advice.verdict == "rag", said


def test_there_is_a_reason_and_a_start_for_every_set_of_answers() -> None:
    used: set[str] = set()
    for said in EVERY:
        advice = advise(said)
        assert advice.reasons and (advice.training is None) == (advice.verdict == "rag")
        used |= {reason.source for reason in (*advice.reasons, *advice.first)}
        if advice.training:
            assert 1 <= advice.training.epochs <= 25
            small, large = (must_be_named(name).parameters() for name in (advice.training.smaller, advice.training.model))
            assert small < large
    assert used == set(SOURCES.values())


def test_who_has_tried_no_prompt_or_has_few_examples_is_told() -> None:
    assert "prompt" in advise(Answers("behaviour", prompt="untried", examples=500)).first[0].text
    assert "at least 50" in advise(Answers("behaviour", prompt="short", examples=10)).first[0].text
    assert advise(Answers("behaviour", prompt="short", examples=500)).first == ()
