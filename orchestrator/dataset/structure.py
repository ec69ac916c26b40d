"""The first reading: every row, streamed. What cannot be trained on, what is there twice, what contradicts itself.

It keeps four numbers a row and no text.
"""
from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

from . import formats, signs, split
from .faults import SHOWN, Fault, Finding, Tally, Weight
from .formats import Row
from .hashes import Hashes
from .source import Source

MOST_FAULTS = 1000                       # a reading with so many ends: the file is something else
LABELS = ("label", "category", "class", "intent", "topic")
SHORT = 40                               # characters of an answer that may be a class's name
MASK = (1 << 64) - 1
UNFINISHED = 100                         # characters of an answer that ends without a full stop, before its length tells


@dataclass(slots=True)
class Structure:
    """What the first reading found. Lengths are characters, counted by powers of two."""

    format: str
    hashes: Hashes = field(default_factory=Hashes)
    tally: Tally = field(default_factory=Tally)
    asked: list[int] = field(default_factory=lambda: [0] * 33)
    answered: list[int] = field(default_factory=lambda: [0] * 33)
    characters: int = 0
    longest: int = 0
    further: int = 0                     # rows with keys that no format has
    ended_early: bool = False
    _open: dict[int, tuple[int, int]] = field(default_factory=dict)


def examine(source: Source, format: str, doubts: bool = True, seen: Callable[[int], None] | None = None) -> Structure:
    """Read every row. `doubts`: also what only deserves a look; `seen` hears of progress, in rows."""
    found = Structure(format)
    marks: signs.Marks = ()

    def peek(block: bytes) -> None:
        nonlocal marks
        marks = signs.in_block(block)

    keys = frozenset(formats.FORMATS[format]) | frozenset(formats.OPTIONAL.get(format, ()))
    for line, row, raw in source.rows(peek=peek if doubts else None):
        try:
            if isinstance(row, Fault):
                raise row
            made = formats.convert(format, row)
            stamp = split.stamp(formats.spell(made))
        except Fault as fault:
            found.tally.add(source.finding(line, raw, fault, "row"))
            if found.tally.counts["row"] >= MOST_FAULTS:
                found.ended_early = True
                return found
            continue
        further = not row.keys() <= keys
        found.further += further
        given, answer = _parts(found, made)
        klass = (further and named_class(row)) or (given and _class(answer)) or 0
        found.hashes.add(stamp, hash(given) & MASK or 1 if given else 0, line, klass)
        if doubts:
            if given:
                _look_at_answer(found, source, line, given[-1], answer)
            if marks and any(mark.search(raw) for mark in marks):
                _look_at_text(found, source, line, made)
            if seen and not len(found.hashes) & 0x3FFF:
                seen(len(found.hashes))
    if doubts:
        _look_at_all(found, source)
    return found


def _parts(found: Structure, made: Row) -> tuple[tuple[str, ...], str]:
    """(the turns before the answer, the answer), measured; text has no turns."""
    given: tuple[str, ...] = ()
    if "text" in made:
        answer = made["text"]
    else:
        *before, last = made["messages"]
        given, answer = tuple([turn["content"] for turn in before]), last["content"]
        found.asked[len(given[-1]).bit_length()] += 1
    size = len(answer)
    found.answered[size.bit_length()] += 1
    found.characters += size + sum(map(len, given))
    if size > found.longest:
        found.longest = size
    return given, answer


def named_class(row: Row) -> int:
    """A number for the class that a row names; 0 for none."""
    for label in LABELS:
        if type(name := row.get(label)) is str:
            return zlib.crc32(name.encode("utf-8", "replace")) | 1 << 32
    return 0


def _class(answer: str) -> int:
    """A number for the class that a short answer may be."""
    return zlib.crc32(answer.encode()) | 1 << 33 if len(answer) <= SHORT else 0


def _look_at_answer(found: Structure, source: Source, line: int, question: str, answer: str) -> None:
    if len(answer) >= UNFINISHED and answer[-1].isalnum():
        times, first = found._open.get(len(answer), (0, line))
        found._open[len(answer)] = (times + 1, first)
    for code, fault in signs.of_answer(question, answer):
        found.tally.add(_doubt(source, line, code, fault))


def _look_at_text(found: Structure, source: Source, line: int, row: Row) -> None:
    for code, fault in signs.of_text(row):
        found.tally.add(_doubt(source, line, code, fault))


def _doubt(source: Source, line: int, code: str, fault: Fault) -> Finding:
    return Finding(Weight.DOUBT, code, source.path.name, line, 0, str(fault), fault.mend)


def _look_at_all(found: Structure, source: Source) -> None:
    """What shows only once all rows were seen."""
    times, first = found._open.get(found.longest, (0, 0))
    if times >= 3:
        found.tally.add(_doubt(source, first, "cut", Fault(
            f"{times} answers end after exactly {found.longest} characters, the most of all, without a full stop: they seem "
            "to be cut", "bring them whole")), times)
    for code, same, what, mend in (
            ("duplicate", found.hashes.duplicates(SHOWN), "the same row as line {}", "keep one of them"),
            ("contradiction", found.hashes.contradictions(SHOWN), "the same input as line {}, another answer",
             "keep the answer that is right; a model learns to guess between the two")):
        for place, (line, earlier) in enumerate(same.first):
            rest = same.count - len(same.first) + 1 if place == len(same.first) - 1 else 1
            found.tally.add(_doubt(source, line, code, Fault(what.format(earlier), mend)), rest)
