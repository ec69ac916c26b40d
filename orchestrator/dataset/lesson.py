"""What rows would teach: a way of answering, or facts. Told from a sample by a few shares; a hint, never a finding.

A question that stands alone with an answer whose words are not in it asks for what the model knows. An answer that is a
class, a form, or made of the question's own words is behaviour. Of languages without spaces the words are not told.
"""
from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from statistics import median

from .content import rows, spoken
from .coverage import SMALL_WORDS
from .source import Source

MOST_ROWS = 2_000
LONE = 300                               # characters of a question that brings no passage with it
WORD = re.compile(r"[^\W\d_]{4,}")
SPACED = re.compile(r"[^\u3040-\u30ff\u3400-\u9fff]+")
FORM = re.compile(r"```|</\w+>")


@dataclass(frozen=True, slots=True)
class Lesson:
    """Shares in permille of `rows`. `foreign`: of an answer's longer words, those that are not before it, on average.
    `answer`: characters, the median."""

    rows: int
    lone_questions: int
    forms: int                           # answers that are JSON, code, a page, or have no word
    foreign: int | None                  # None where that is not known of half of the rows
    answer: int


def lesson(source: Source, format: str, wanted: frozenset[int] | None = None) -> Lesson:
    """Of the first rows of those `wanted` (lines), all when None."""
    lone = forms = 0
    foreign: list[float] = []
    sizes: list[int] = []
    for asked, last, answer in _some(source, format, wanted):
        lone += "?" in last and len(asked) <= LONE
        forms += _is_form(answer)
        sizes.append(len(answer))
        if (share := _foreign(asked, answer)) is not None:
            foreign.append(share)
    count = len(sizes) or 1
    return Lesson(len(sizes), lone * 1000 // count, forms * 1000 // count,
                  round(1000 * sum(foreign) / len(foreign)) if len(foreign) * 2 > len(sizes) else None,
                  round(median(sizes or [0])))


def _some(source: Source, format: str, wanted: frozenset[int] | None) -> Iterator[tuple[str, str, str]]:
    """(all before the answer, the last turn before it, the answer)."""
    for number, (_, _, made) in enumerate(rows(source, format, wanted)):
        if number == MOST_ROWS:
            return
        asked, answer = spoken(made)
        yield asked, made["messages"][-2]["content"] if "messages" in made and len(made["messages"]) > 1 else "", answer


def _is_form(answer: str) -> bool:
    if FORM.search(answer) or not any(letter.isalpha() for letter in answer):
        return True
    if answer[:1] not in ("{", "["):
        return False
    try:
        json.loads(answer)
    except (ValueError, RecursionError):
        return False
    return True


def _foreign(asked: str, answer: str) -> float | None:
    """None where nothing was asked, or words are not parted by spaces. An answer without longer words says nothing new."""
    words = {word for word in WORD.findall(answer.lower()) if word not in SMALL_WORDS}
    if not asked or not SPACED.fullmatch(answer[:200]):
        return None
    return bool(words) and len(words - set(WORD.findall(asked.lower()))) / len(words)
