"""`sealtune advise`: knowledge or behaviour? Fine-tune, look up (RAG), or both; before anything is written or paid."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .options import JSON, YES

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from ..domain.document import Json
    from ..planning.advice import Advice, Answers, Reason
    from .dialogue import Dialogue
    from .shapes.before import Lesson

ANSWERS = typer.Option("", "--answers", metavar="NAME=WORD,…",
                       help="need, facts, cite, examples, prompt, answer; what is missing is asked.")


def advise(
    dataset: str = typer.Option("", "--dataset", metavar="FILE", help="Rows that answer what they can."),
    answers: str = ANSWERS, yes: bool = YES, json: bool = JSON,
) -> None:
    """Say whether fine-tuning, looking things up (RAG), or both will serve, and why.

    Asks six questions; a dataset answers three of them. With --yes what is open is taken as the mildest answer.
    """
    from ..planning.advice import advise as judge
    from .dialogue import Dialogue
    from .known import read
    from .render import show_json
    from .told import answered

    given = parsed(answers)
    told, why, data = answered(read(Path(dataset))) if dataset else ({}, [], None)
    said = ask(Dialogue(yes), {**told, **given})
    advice = judge(said)
    if json:
        show_json(tree(said, advice, [] if "need" in given else why, data))
        return
    for line in [*(f"data     {one}" for one in why if "need" not in given), *lines(advice, dataset)]:
        typer.echo(line)


def parsed(text: str) -> dict[str, str]:
    """"need=behaviour,examples=300". BadInput."""
    from ..errors import BadInput

    found = {}
    for part in filter(None, text.split(",")):
        name, equals, word = (piece.strip() for piece in part.partition("="))
        if not equals or name not in known_names():
            raise BadInput(f"--answers {part.strip()!a} is no answer", hint=f"NAME=WORD, with {', '.join(known_names())}")
        found[name] = checked(name, word)
    return found


def known_names() -> tuple[str, ...]:
    from ..planning.advice import QUESTIONS

    return (*QUESTIONS, "examples")


def checked(name: str, word: str) -> str:
    """The answer to a question, spelled out. BadInput."""
    from ..errors import BadInput
    from ..planning.advice import QUESTIONS
    from .dialogue import chosen

    if name != "examples":
        return chosen(word, QUESTIONS[name][1])
    if not (word.isascii() and word.isdigit() and len(word) <= 12):
        raise BadInput(f"examples: {word!a} is no whole number", hint="how many pairs of input and right answer there are")
    return str(int(word))


def ask(dialogue: Dialogue, known: Mapping[str, str]) -> Answers:
    """What is not known yet is asked, in this order."""
    from functools import partial

    from ..planning.advice import QUESTIONS, Answers

    silence, words = Answers(), dict(known)
    for name, (question, choices) in QUESTIONS.items():
        if name not in words:
            words[name] = dialogue.choice(question, choices, getattr(silence, name))
    if "examples" not in words:
        words["examples"] = dialogue.text("how many examples of input and right answer are there?", "0",
                                          partial(checked, "examples"))
    return Answers(words["need"], words["facts"], words["cite"], int(words["examples"]), words["prompt"], words["answer"])


def tree(said: Answers, advice: Advice, why: Sequence[str], data: Lesson | None) -> dict[str, Json]:
    """All keys always; `training` null where nothing is to be trained, `data` where no dataset was read."""
    from dataclasses import asdict

    training = asdict(advice.training) if advice.training else None
    if training:
        training["learning_rate"] = str(training["learning_rate"])
    return {"verdict": advice.verdict, "answers": asdict(said), "read": list(why),
            "reasons": [asdict(one) for one in advice.reasons], "first": [asdict(one) for one in advice.first],
            "training": training, "data": data, "error": None}


def lines(advice: Advice, dataset: str) -> list[str]:
    words = {"fine-tune": "fine-tune", "rag": "look things up (RAG), which is not what sealtune builds; train nothing yet",
             "both": "both: train how it answers, and look up what it says (RAG, which is not what sealtune builds)"}
    told = [f"advice   {words[advice.verdict]}"]
    told += _listed("because", advice.reasons) + _listed("first", advice.first)
    if (start := advice.training) is not None:
        told += [f"model    {start.model}; {start.smaller} first, which costs a part and may do",
                 f"training learning_rate {start.learning_rate}, num_train_epochs {start.epochs}",
                 f"next     sealtune init{f' --dataset {dataset}' if dataset else ''}"]
    return told


def _listed(word: str, reasons: Sequence[Reason]) -> list[str]:
    return [f"{word if not n else '':8} {one.text}\n         [{one.source}]" for n, one in enumerate(reasons)]
