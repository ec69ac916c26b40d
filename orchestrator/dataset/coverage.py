"""What the rows are about: classes where there are some, with the rare ones, and words that many rows have in common."""
from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass

from . import language
from .formats import Row
from .structure import LABELS, SHORT

MOST_CLASSES, MOST_TOPICS = 100, 12
RARE_ROWS, RARE_SHARE = 5, 0.02
SMALL_WORDS = frozenset().union(*language.WORDS.values())


@dataclass(frozen=True, slots=True)
class Coverage:
    """`classes`: (name, rows), the most frequent first, () where there are none. `topics`: (word, rows that have it)."""

    classes: tuple[tuple[str, int], ...]
    labelled: bool                       # classes are the rows' own labels, and not their short answers
    rare: tuple[tuple[str, int, int], ...]           # (name, rows, line of its first row)
    topics: tuple[tuple[str, int], ...]


class Counting:
    def __init__(self) -> None:
        self._rows = 0
        self._labels, self._answers, self._words = Counter[str](), Counter[str](), Counter[str]()
        self._first: dict[str, int] = {}

    def add(self, line: int, row: Row, answer: str, words: list[str]) -> None:
        """`words`: of the question, or of the text."""
        self._rows += 1
        label = next((row[key] for key in LABELS if isinstance(row.get(key), str)), None)
        if label is not None:
            self._labels[label[:SHORT]] += 1
        if 0 < len(answer) <= SHORT and len(self._answers) < 10 * MOST_CLASSES:
            self._answers[answer] += 1
        for name in (label and label[:SHORT], answer if len(answer) <= SHORT else None):
            if name and len(self._first) < 20 * MOST_CLASSES:
                self._first.setdefault(name, line)
        if len(self._words) < 200_000:
            self._words.update({w for w in words if len(w) > 3 and w not in SMALL_WORDS and not w.isdigit()})

    def result(self) -> Coverage:
        labelled = are_classes(self._labels.values(), self._rows)
        found = self._labels if labelled else self._answers
        if not are_classes(found.values(), self._rows):
            found = Counter()
        rare = tuple((name, rows, self._first.get(name, 0)) for name, rows in reversed(found.most_common())
                     if rows < RARE_ROWS and rows < RARE_SHARE * self._rows)
        topics = [(w, n) for w, n in self._words.most_common(10 * MOST_TOPICS) if 1 < n <= 0.6 * self._rows]
        return Coverage(tuple(found.most_common()), labelled, rare, tuple(topics[:MOST_TOPICS]))


def are_classes(counts: Collection[int], rows: int) -> bool:
    """Few names for nearly all rows: five rows for each and more. `counts`: rows of each name."""
    return 1 < len(counts) <= min(MOST_CLASSES, rows // 5) and sum(counts) >= 0.9 * rows
