"""A file that is one JSON array of rows, element by element, in the memory of one element."""
from __future__ import annotations

import re
from collections.abc import Container, Iterable, Iterator

from .faults import Fault
from .lines import MOST_LINE_BYTES, Read, parse

MISSING = Fault("an element of the array is missing", "take out the comma too much", column=1)
TOKENS = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"?|[\[\]{},]', re.DOTALL)


def read(blocks: Iterable[bytes], wanted: Container[int] | None = None) -> Iterator[Read]:
    """Every element with the line that it begins on. Where the array is broken, a Fault ends it."""
    for line, raw, fault in _elements(blocks):
        if fault:
            yield line, fault, raw
            return
        if wanted is None or line in wanted:
            yield line, _parsed(line, raw), raw


def _parsed(line: int, raw: bytes) -> dict[str, object] | Fault:
    try:
        return parse(0 if line == 1 else line, raw)
    except Fault as fault:
        return _further(raw, fault)


def _further(raw: bytes, fault: Fault) -> Fault:
    """The fault's place in an element that goes over several lines."""
    before = raw.decode("utf-8", "replace")[:max(0, fault.column - 1)]
    if "\n" not in before:
        return fault
    return Fault(str(fault), fault.mend, fault.path, len(before) - before.rfind("\n"), before.count("\n"))


def _elements(blocks: Iterable[bytes]) -> Iterator[tuple[int, bytes, Fault | None]]:
    """(line, bytes of an element, None); at the end perhaps a fault of the array itself."""
    text, line, source = b"", 1, iter(blocks)
    while b"[" not in text:
        text += next(source, b"]")
    place = text.index(b"[") + 1
    line += text.count(b"\n", 0, place)
    closed = False
    while not closed:
        end, closed = _end(text, place)
        while end < 0:
            more, text, place = next(source, None), text[place:], 0
            if more is None or len(text) > MOST_LINE_BYTES:
                at = text.rstrip().count(b"\n") if more is None else _lead(text)
                yield line + at, text.strip(), _broken(more is None)
                return
            text += more
            end, closed = _end(text, place)
        element = text[place:end]
        if raw := element.strip():
            yield line + _lead(element), raw, None
        elif not closed:
            yield line + element.count(b"\n"), b"", MISSING
        line += element.count(b"\n")
        place = end + 1
    if (text[place:] + b"".join(source)).strip():
        yield line, b"", Fault("something stands behind the array", "one array is the whole file", column=1)


def _lead(element: bytes) -> int:
    return element[:len(element) - len(element.lstrip())].count(b"\n")


def _broken(ended: bool) -> Fault:
    if ended:
        return Fault("the array is not closed", "the file is cut off, or its last bracket is missing", column=1)
    return Fault(f"longer than {MOST_LINE_BYTES // 1024 // 1024} MiB", "cut the row into several; no model reads so much")


def _end(text: bytes, place: int) -> tuple[int, bool]:
    """Where the element ends that begins at `place`, and whether the array ends with it; -1: not in here."""
    depth = 0
    for token in TOKENS.finditer(text, place):
        mark = token[0]
        if mark in (b"{", b"["):
            depth += 1
        elif mark == b",":
            if depth == 0:
                return token.start(), False
        elif mark in (b"}", b"]"):
            depth -= 1
            if depth < 0:
                return token.start(), True
        elif token.end() == len(text) and (len(mark) < 2 or not mark.endswith(b'"')):
            return -1, False
    return -1, False
