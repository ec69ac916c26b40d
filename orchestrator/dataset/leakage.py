"""Rows of a test file that the training file has too: the same, with the same question, or nearly the same."""
from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .check import Checked
from .faults import Finding, Weight
from .hashes import Numbers
from .near import Texts, pairs


@dataclass(frozen=True, slots=True)
class Leakage:
    """How many rows of the test file `file` are in the training file."""

    file: str
    rows: int
    same: int                            # the whole row
    asked: int                           # the question alone
    near: int                            # nearly the whole row, among the rows looked into


def look(train: Checked, test: Checked) -> Leakage:
    """Compare, and tell each leaked row in the training file's tally, at its line in the test file."""
    name = test.source.path.name
    seen: set[int] = set()

    def tell(found: list[tuple[int, int]], code: str, what: str) -> int:
        fresh = [(line, at) for line, at in found if line not in seen]
        for line, at in fresh:
            seen.add(line)
            train.tally.add(Finding(Weight.DOUBT, code, name, line, 0, what.format(train.source.path.name, at),
                                    "take it out of one of the two; a test on it measures memory"))
        return len(fresh)

    same = tell(_common(train, test, "stamps"), "leak", "the same row as {}:{}")
    asked = tell(_common(train, test, "inputs"), "leak-question", "the question of {}:{}")
    near = tell(_near(train, test), "leak-near", "nearly the same row as {}:{}")
    return Leakage(name, test.rows, same, asked, near)


def _common(train: Checked, test: Checked, column: str) -> list[tuple[int, int]]:
    """(line of the test file, line of the training file) of rows with the same number."""
    theirs, ours = test.structure.hashes.column(column), train.structure.hashes.column(column)
    wanted: Numbers = np.unique(theirs[theirs != 0])
    places = np.flatnonzero(np.isin(ours, wanted))
    first: dict[int, int] = {}
    for key, line in zip(ours[places].tolist(), train.structure.hashes.column("lines")[places].tolist(), strict=True):
        first.setdefault(key, line)
    lines = test.structure.hashes.column("lines").tolist()
    return [(line, first[key]) for line, key in zip(lines, theirs.tolist(), strict=True) if key in first]


def _near(train: Checked, test: Checked) -> list[tuple[int, int]]:
    """The same of rows nearly alike, among those that were looked into."""
    a, b, both = train.content, test.content, Texts()
    for texts in (a.texts, b.texts):
        both.runs += texts.runs
        both.spelled += texts.spelled
        both.figures += texts.figures
    count = len(a.lines)
    return [(b.lines[later - count], a.lines[first]) for first, later in pairs(both) if first < count <= later]
