"""`sealtune advise`, typed and asked."""
from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.advise import ask, parsed
from orchestrator.cli.app import app
from orchestrator.cli.dialogue import Dialogue
from orchestrator.cli.shapes import SHAPES
from orchestrator.errors import BadInput, Refused
from orchestrator.lab import task
from orchestrator.planning.advice import Answers
from tests.fakes.shapes import misfits

Out = pytest.CaptureFixture[str]


def told(capsys: Out, *words: str) -> dict[str, Any]:
    app(["advise", *words, "--json"], standalone_mode=False)
    tree: dict[str, Any] = json.loads(capsys.readouterr().out)
    assert misfits(SHAPES["advise"], tree) == []
    return tree


def test_six_answers_and_nothing_is_asked(capsys: Out) -> None:
    tree = told(capsys, "--answers", "need=know, facts=d, cite=yes, examples=0, prompt=untried, answer=long")
    assert (tree["verdict"], tree["training"], tree["data"], tree["read"]) == ("rag", None, None, [])
    assert tree["answers"] == {"need": "knowledge", "facts": "daily", "cite": "yes", "examples": 0, "prompt": "untried",
                               "answer": "long"}


def test_a_dataset_answers_what_it_can(tmp_path: Path, capsys: Out) -> None:
    task.write(tmp_path / "visits.jsonl", rows=60)
    tree = told(capsys, "--dataset", str(tmp_path / "visits.jsonl"), "--yes")
    assert (tree["verdict"], tree["answers"]["need"], tree["answers"]["examples"]) == ("fine-tune", "behaviour", 60)
    assert tree["training"] and tree["data"] and tree["read"]
    other = told(capsys, "--dataset", str(tmp_path / "visits.jsonl"), "--answers", "need=both", "--yes")
    assert (other["verdict"], other["read"]) == ("both", [])


def test_for_people_each_reason_has_its_source(capsys: Out) -> None:
    app(["advise", "--answers", "need=both", "--yes"], standalone_mode=False)
    out = capsys.readouterr().out
    assert "advice   both: train how it answers" in out and "[Ovadia et al." in out and "learning_rate 0.0002" in out


def test_the_six_questions_in_their_order() -> None:
    asked: list[str] = []
    answers: Iterator[str] = iter(["b", "bo", "never", "n", "sh", "label", "many", "300"])

    def say(question: str) -> str:
        asked.append(question)
        return next(answers)

    assert ask(Dialogue(False, say), {}) == Answers("both", "never", "no", 300, "short", "label")
    assert len(asked) == 8 and asked[-1] == asked[-2]        # "b" may be two words, and "many" is no number


@pytest.mark.parametrize("text", ["need", "mood=good", "need=moon", "need=b", "examples=-1", "examples=some",
                                  "examples=" + "9" * 13])
def test_what_is_no_answer_is_told(text: str) -> None:
    with pytest.raises(BadInput):
        parsed(text)


def test_a_dataset_that_cannot_be_read_and_a_missing_terminal_are_told(tmp_path: Path) -> None:
    with pytest.raises(BadInput):
        app(["advise", "--dataset", str(tmp_path / "none.jsonl"), "--yes"], standalone_mode=False)
    with pytest.raises(Refused, match="no terminal"):
        app(["advise"], standalone_mode=False)
