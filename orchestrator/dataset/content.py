"""The second reading: at most 50,000 rows, looked into. Which are nearly the same, which contradict each other nearly, what
languages and classes there are.

The sample is the rows with the smallest stamps: the same for the same rows, in whatever order they stand.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from . import coverage, formats
from .coverage import Coverage
from .faults import Fault
from .formats import Row
from .language import language
from .near import ALIKE, UNLIKE, Families, Texts, alike, pairs, without_forms
from .source import Source
from .structure import Structure

MOST_ROWS = 50_000
FAMILY = 0.1                             # of the rows: a larger family of near-duplicates is a form, and is parted


@dataclass(slots=True)
class Content:
    """`lines`: of the rows looked into. Pairs are lines, the earlier one first. `families`: a stamp for a stamp, the
    rows that must stay on one side of the split."""

    rows: int
    lines: list[int] = field(default_factory=list)
    near: list[tuple[int, int]] = field(default_factory=list)
    against: list[tuple[int, int]] = field(default_factory=list)
    families: dict[int, int] = field(default_factory=dict)
    languages: Counter[str] = field(default_factory=Counter)
    coverage: Coverage | None = None
    preview: list[Row] = field(default_factory=list)
    texts: Texts = field(default_factory=Texts)


def examine(source: Source, structure: Structure, most: int = MOST_ROWS) -> Content:
    """Look into `most` rows at most."""
    stamps, lines = structure.hashes.column("stamps"), structure.hashes.column("lines")
    picked = np.arange(len(stamps)) if len(stamps) <= most else np.sort(np.argpartition(stamps, most)[:most])
    wanted, whole = frozenset(lines[picked].tolist()), len(stamps) <= most
    found, asked, answered, counting = Content(len(stamps)), Texts(), Texts(), coverage.Counting()
    for line, row, made in rows(source, structure.format, None if whole else wanted):
        question, answer = spoken(made)
        found.lines.append(line)
        words = found.texts.add(f"{question}\n{answer}")
        asked_words = asked.add(question) if question else words
        answered.add(answer)
        found.languages[language(answer, words)] += 1
        counting.add(line, row, answer if question else "", asked_words)
        if len(found.preview) < 2:
            found.preview.append(made)
    _compare(found, asked, answered, stamps[picked].tolist(), structure.hashes.column("inputs")[picked].tolist())
    found.coverage = counting.result()
    return found


def rows(source: Source, format: str, wanted: frozenset[int] | None = None) -> Iterator[tuple[int, Row, Row]]:
    """(line, row as it stands, row as it is trained on) of rows that were found good."""
    for line, row, _ in source.rows(wanted):
        if not isinstance(row, Fault):
            yield line, row, formats.convert(format, row)


def spoken(made: Row) -> tuple[str, str]:
    """(all before the answer, the answer); text is all answer."""
    if "text" in made:
        return "", made["text"]
    return "\n".join(turn["content"] for turn in made["messages"][:-1]), made["messages"][-1]["content"]


def _compare(found: Content, asked: Texts, answered: Texts, stamps: list[int], given: list[int]) -> None:
    """Near-duplicates that are no exact ones; questions nearly the same whose answers are not."""
    lines = found.lines
    near = [(a, b) for a, b in pairs(found.texts) if stamps[a] != stamps[b]]
    found.near = _once([(lines[a], lines[b]) for a, b in near])
    families = Families.of(len(lines), near)
    sizes = Counter(families.head(n) for n in range(len(lines)))
    heads = {n: families.head(n) for n in range(len(lines)) if 1 < sizes[families.head(n)] <= max(10, FAMILY * len(lines))}
    found.families = {stamps[n]: stamps[head] for n, head in heads.items()}
    if len(asked.runs) == len(lines):
        own = without_forms(answered.runs)
        found.against = _once([(lines[a], lines[b]) for a, b in pairs(asked)
                               if answered.spelled[a] != answered.spelled[b] and alike(own[a], own[b]) < UNLIKE
                               and given[a] != given[b]])


def _once(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """One pair a later row."""
    return list({b: (a, b) for a, b in reversed(found)}.values())[::-1]


__all__ = ["ALIKE", "MOST_ROWS", "Content", "examine", "rows", "spoken"]
