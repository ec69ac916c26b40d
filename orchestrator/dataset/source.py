"""A dataset's rows, whatever the file is: JSON lines, a JSON array, CSV or Parquet, plain or packed."""
from __future__ import annotations

import hashlib
from collections.abc import Callable, Container, Iterator
from pathlib import Path

from ..domain.names import Digest
from . import arrays, lines, tables
from .faults import Fault, Finding, Weight
from .files import PARQUET, Bytes
from .lines import Read
from .locate import column

TABLES = (".csv", ".tsv")
PACKED = (".gz", ".zst", ".zstd", ".gzip")


class Source:
    """Read as often as one likes; `digest` is of the whole file, after a reading that went to its end."""

    def __init__(self, path: Path) -> None:
        self.path, self.digest = path, Digest("")
        self.kind = kind_of(path)

    def rows(self, wanted: Container[int] | None = None, peek: Callable[[bytes], None] | None = None) -> Iterator[Read]:
        """(line, row or Fault, its bytes), in order; of `wanted` lines only, where that is given. `peek` is shown the bytes
        of several rows, or of one, before they come."""
        content = Bytes(self.path)
        if self.kind == "parquet":
            with self.path.open("rb") as file:
                self.digest = Digest("sha256:" + hashlib.file_digest(file, "sha256").hexdigest())
            yield from _peeked(tables.read_parquet(self.path, wanted), peek)
            return
        if self.kind == "jsonl":
            yield from lines.read(content.blocks(), wanted, peek)
        else:
            read = {"array": arrays.read, "csv": tables.read_csv}[self.kind]
            yield from _peeked(read(content.blocks(), wanted), peek)
        if not content.digest:
            for _ in content.blocks():   # a fault ended the reading early
                pass
        self.digest = content.digest

    def finding(self, line: int, raw: bytes, fault: Fault, code: str = "fault",
                weight: Weight = Weight.FAULT) -> Finding:
        """The fault with its place in the file."""
        down, where = fault.down, fault.column
        if not where and raw and self.kind in ("jsonl", "array"):
            down, where = _place(raw, fault)
        if self.kind == "array" and not down and where != 1:
            where = 0                    # where in its line an element begins is not kept
        return Finding(weight, code, self.path.name, line + down, where, str(fault), fault.mend)


def _peeked(rows: Iterator[Read], peek: Callable[[bytes], None] | None) -> Iterator[Read]:
    for read in rows:
        if peek:
            peek(read[2])
        yield read


def _place(raw: bytes, fault: Fault) -> tuple[int, int]:
    """(lines below the first one, column) of what the fault is about."""
    try:
        text = raw.decode("utf-8")
        place = column(text, fault.path) - 1
    except (ValueError, RecursionError):                 # a line that is not JSON has no places in it
        return 0, 1
    return text.count("\n", 0, place), place - text.rfind("\n", 0, place)


def kind_of(path: Path) -> str:
    """jsonl | array | csv | parquet, by what the file begins with; a table of text only by its name."""
    head = Bytes(path).head()
    if head.startswith(PARQUET):
        return "parquet"
    names = [s.lower() for s in path.suffixes]
    while names and names[-1] in PACKED:
        names.pop()
    begin = head.lstrip()[:1]
    if names and names[-1] in TABLES and begin != b"{":
        return "csv"
    return "array" if begin == b"[" else "jsonl"
