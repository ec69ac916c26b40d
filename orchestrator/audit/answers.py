"""What a check may answer, and how an answer becomes a numbered line."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from ..domain.evidence import Check
from ..domain.text import clean
from .case import NotMade

WHY_MAX = 400                            # characters of a reason that may quote the document


@dataclass(frozen=True, slots=True)
class Answer:
    held: bool | None
    why: str = ""
    applies: bool = True


def passed(why: str = "") -> Answer:
    return Answer(True, why)


def failed(why: str) -> Answer:
    return Answer(False, why)


def unchecked(why: str) -> Answer:
    return Answer(None, why)


def inapplicable(why: str) -> Answer:
    return Answer(None, why, applies=False)


def made(number: int, text: str, look: Callable[[], Answer]) -> Check:
    """A document that is not shaped as ours has failed the check that stumbled over it."""
    try:
        answer = look()
    except NotMade as lack:
        answer = unchecked(str(lack))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as problem:
        answer = failed(f"not readable: {type(problem).__name__}")
    return Check(number, text, answer.held, clean(answer.why, WHY_MAX), answer.applies)
