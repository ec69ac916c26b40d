"""The check of a dataset, top to bottom: what it is, every row, a closer look at some, and which rows are held out."""
from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from ..errors import BadInput
from . import content, coverage, split, structure
from .content import Content
from .detect import detected
from .faults import Finding, Tally, Weight
from .formats import kind_of
from .hashes import Numbers
from .source import Source
from .structure import Structure
from .tokens import Counter, Tokens

FEWEST, FEW, MANY = 2, 200, 10_000
RULE = "2"                               # of the split


@dataclass(frozen=True, slots=True)
class Checked:
    """A dataset that was looked at. `content` and `chosen` are empty where there are faults."""

    source: Source
    structure: Structure
    content: Content
    chosen: frozenset[int]               # stamps of the rows held out
    held_out: int                        # how many rows these are
    stratified: bool

    @property
    def tally(self) -> Tally:
        return self.structure.tally

    @property
    def rows(self) -> int:
        return len(self.structure.hashes)

    @property
    def kind(self) -> str:
        return kind_of(self.structure.format)


def check(path: Path, format: str = "auto", seen: Callable[[int], None] | None = None) -> Checked:
    """Read it twice. BadInput where it cannot be read as rows at all; faults of rows are in the tally."""
    source = Source(path)
    format = detected(source) if format == "auto" else format
    found = structure.examine(source, format, seen=seen)
    if found.tally.faults:
        return Checked(source, found, Content(len(found.hashes)), frozenset(), 0, False)
    if len(found.hashes) < FEWEST:
        raise BadInput(f"{path.name}: rows: {len(found.hashes)}; at least {FEWEST} are needed, one of them to hold out",
                       hint="a few hundred checked examples are enough")
    looked = content.examine(source, found)
    chosen, held_out, stratified = drawn(path, found, looked)
    judge(source, found, looked)
    return Checked(source, found, looked, chosen, held_out, stratified)


def count_tokens(found: Checked, counter: Counter) -> Tokens:
    """Count the rows that were looked into. Rows that the model's template refuses become faults."""
    wanted = None if len(found.content.lines) == found.rows else frozenset(found.content.lines)
    rows = ((line, made) for line, _, made in content.rows(found.source, found.structure.format, wanted))
    return counter.count(rows, found.tally, found.source.path.name)


def drawn(path: Path, found: Structure, looked: Content) -> tuple[frozenset[int], int, bool]:
    """(stamps held out, how many rows, by classes or not), by rule 2."""
    stamps = found.hashes.column("stamps")
    pool, copies = _pool(stamps)
    classes = _classes(found)
    of = dict(zip(stamps.tolist(), found.hashes.column("classes").tolist(), strict=True)) if classes else {}
    try:
        chosen = split.held_out_2(dict(zip(pool, copies, strict=True)), of, looked.families, len(stamps))
    except ValueError:
        raise BadInput(f"{path.name}: all {len(stamps)} rows are the same, none can be held out",
                       hint="a few hundred checked examples are enough, all of them different") from None
    counts = dict(zip(pool, copies, strict=True))
    return chosen, sum(counts[one] for one in chosen), classes


def _pool(stamps: Numbers) -> tuple[list[int], list[int]]:
    """The smallest stamps, and how many rows have each."""
    least = stamps
    if len(stamps) > split.POOL:
        limit = np.partition(stamps, split.POOL)[split.POOL]
        least = stamps[stamps <= limit]
    found, copies = np.unique(least, return_counts=True)
    return found.tolist(), copies.tolist()


def _classes(found: Structure) -> bool:
    """The rows fall into classes; looked at in the first rows where there are very many."""
    some = found.hashes.column("classes")[:split.POOL]
    _, counts = np.unique(some[some != 0], return_counts=True)
    return coverage.are_classes(counts.tolist(), len(some))


# ---- what deserves a word ---------------------------------------------------------------------------------


def judge(source: Source, found: Structure, looked: Content) -> None:
    """Doubts and notes about what the second reading saw, and about the whole."""
    def say(weight: Weight, code: str, line: int, what: str, mend: str) -> None:
        found.tally.add(Finding(weight, code, source.path.name, line, 0, what, mend))

    rows = len(found.hashes)
    for earlier, line in looked.near:
        say(Weight.DOUBT, "near-duplicate", line, f"nearly the same row as line {earlier}", "keep one of them")
    for earlier, line in looked.against:
        say(Weight.DOUBT, "near-contradiction", line, f"nearly the same input as line {earlier}, quite another answer",
            "keep the answer that is right")
    if rows < FEW:
        say(Weight.NOTE, "few", 0, f"only {rows} rows; a few hundred checked examples are enough, fewer often are not",
            "write more, or try few-shot prompts first")
    if rows > MANY:
        say(Weight.NOTE, "many", 0, f"{rows} rows; a few thousand checked examples mostly teach as much",
            "train on a part first: it costs a part")
    if found.further:
        say(Weight.NOTE, "further-keys", 0, f"{found.further} of {rows} rows have further keys, which are not used",
            "nothing, unless a key is misspelt")
    if looked.coverage:
        _judge_classes(looked.coverage, len(looked.lines), say)


def _judge_classes(cover: coverage.Coverage, rows: int, say: Callable[[Weight, str, int, str, str], None]) -> None:
    for _, count, line in cover.rare:
        say(Weight.DOUBT, "rare-class", line, f"its class has only {count} of {rows} rows",
            f"{coverage.RARE_ROWS} rows at least, or leave the class out; a misspelt name is a class of its own")
    if cover.classes and cover.classes[0][1] > 0.95 * rows:
        say(Weight.DOUBT, "one-class", 0, f"{cover.classes[0][1]} of {rows} rows are of one class",
            "a model that always says it would look good: add rows of the others")
