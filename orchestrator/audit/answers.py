"""What a check may answer, how an answer becomes a numbered line, and how two documents are compared."""
from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

from ..domain.document import Json
from ..domain.evidence import Check
from ..domain.text import clean
from .case import NotMade, Signed, tree_of

WORDED = frozenset({"caveats", "ce_conditions"})     # fixed texts, which a release may word anew
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


def made(number: int, text: str, look: Callable[[], Answer], other_release: str = "") -> Check:
    """A document that is not shaped as ours has failed the check that stumbled over it; one of another release, as
    `other_release` says in words, may be shaped otherwise, and could only not be checked."""
    try:
        answer = look()
    except NotMade as lack:
        answer = unchecked(str(lack))
    except (KeyError, TypeError, ValueError, AttributeError, IndexError) as problem:
        trouble = f"not readable: {type(problem).__name__}"
        answer = unchecked(f"{other_release}, {trouble} here") if other_release else failed(trouble)
    return Check(number, text, answer.held, clean(answer.why, WHY_MAX), answer.applies)


def same_layout(said: Json, known: str) -> Answer:
    """Whether a document is of the layout known here, as "sealtune/closing/1"; another number is another release's."""
    if said == known:
        return passed()
    family = re.escape(known.rstrip("0123456789"))
    if isinstance(said, str) and re.fullmatch(family + "[1-9][0-9]{0,3}", said):
        return unchecked(f"of layout {said}, another release's; here {known} is known")
    return failed(f"not of {known}")


def same(said: Signed, again: bytes, other_release: str) -> Answer:
    """Whether a document is what was made again here. Of another release only facts that both tell can contradict."""
    if said.data == again:
        return passed()
    where = contradiction(said.tree, tree_of(again))
    if where or not other_release:
        return failed(f"log and evidence say otherwise{' at ' + where if where else ''}")
    return unchecked(f"{other_release}: laid out otherwise than here, though no fact contradicts log and evidence")


def contradiction(said: Json, again: Json, at: str = "") -> str:
    """The first place at which two trees both say something and not the same; "" where one only says more."""
    if isinstance(said, dict) and isinstance(again, dict):
        shared = sorted((said.keys() & again.keys()) - WORDED)
        pairs = [(f"{at}.{name}".lstrip("."), said[name], again[name]) for name in shared]
    elif isinstance(said, list) and isinstance(again, list) and len(said) == len(again):
        pairs = [(f"{at}[{n}]", *both) for n, both in enumerate(zip(said, again, strict=True))]
    else:
        return "" if type(said) is type(again) and said == again else at
    return next(filter(None, (contradiction(one, other, place) for place, one, other in pairs)), "")
