"""CSV and Parquet: each record a row with the columns as its keys."""
from __future__ import annotations

import csv
import json
from collections.abc import Container, Iterable, Iterator
from pathlib import Path
from typing import Any

from ..errors import BadInput
from .faults import Fault
from .lines import LATIN, MOST_LINE_BYTES, Read, Row

DELIMITERS = ",;\t|"
AT_ONCE = 1000


def read_csv(blocks: Iterable[bytes], wanted: Container[int] | None = None) -> Iterator[Read]:
    """Records under a header; a record's number is the line that it begins on. What is no record is a Fault."""
    csv.field_size_limit(MOST_LINE_BYTES)
    lines = _Lines(blocks)
    delimiter = max(DELIMITERS, key=lines.first().count)
    records = csv.reader(lines, delimiter=delimiter, strict=True)
    header: list[str] = []
    while True:
        begins = lines.number + 1
        try:
            record = next(records, None)
        except csv.Error as problem:
            yield begins, _no_record(str(problem)), b""
            return
        except UnicodeDecodeError:
            yield lines.number, Fault("not UTF-8, it looks like Latin-1 (Windows-1252)", LATIN), b""
            return
        if record is None:
            return
        if not header:
            header = [name.strip() for name in record]
            if len(set(header)) < len(header) or not all(header):
                yield begins, Fault("the header has a name twice, or one that is empty", "give each column one name"), b""
                return
        elif record and (wanted is None or begins in wanted):
            yield begins, _row(header, record), _raw(header, record)


class _Lines:
    """Lines of text, counted; the byte order mark that spreadsheets write is passed over."""

    def __init__(self, blocks: Iterable[bytes]) -> None:
        self.number, self._rest, self._blocks = 0, b"", iter(blocks)
        self._ready: list[bytes] = []

    def first(self) -> str:
        while b"\n" not in self._rest and (block := next(self._blocks, None)):
            self._rest += block
        self._rest = self._rest.removeprefix(b"\xef\xbb\xbf")
        return self._rest.split(b"\n", 1)[0].decode("utf-8", "replace")

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        while not self._ready:
            block = next(self._blocks, None)
            if block is None and not self._rest:
                raise StopIteration
            *lines, self._rest = (self._rest + (block or b"\n" * (not self._rest.endswith(b"\n")))).split(b"\n")
            self._ready = lines[::-1]
        self.number += 1
        return self._ready.pop().decode("utf-8") + "\n"


def _no_record(problem: str) -> Fault:
    if "field larger" in problem:
        return Fault("a field longer than 4 MiB", "a quotation mark is not closed, or the row must be cut")
    if "unexpected end" in problem:
        return Fault("a quotation mark is not closed", 'a quotation mark inside a field is written twice: ""')
    return Fault("a quotation mark in the wrong place", 'a quotation mark inside a field is written twice: ""')


def _row(header: list[str], record: list[str]) -> Row | Fault:
    if len(record) != len(header):
        return Fault(f"{len(record)} fields, the header has {len(header)}",
                     "a field that holds the delimiter or a line break stands in double quotes")
    return dict(zip(header, record, strict=True))


def _raw(header: list[str], record: list[str]) -> bytes:
    return json.dumps(dict(zip(header, record, strict=False)), ensure_ascii=False).encode("utf-8", "surrogatepass")


def read_parquet(path: Path, wanted: Container[int] | None = None) -> Iterator[Read]:
    """Rows by number from 1. BadInput without the library, and for a file that is none."""
    try:
        import pyarrow
        import pyarrow.parquet as parquet
    except ImportError:
        raise BadInput(f"{path.name}: reading Parquet needs pyarrow",
                       hint='python -m pip install "sealtune[parquet]", or bring it as JSON lines') from None
    number = 0
    try:
        for batch in parquet.ParquetFile(path).iter_batches(batch_size=AT_ONCE):
            for row in batch.to_pylist():
                number += 1
                if wanted is None or number in wanted:
                    yield number, _plain(row), json.dumps(row, ensure_ascii=False, default=str).encode()
    except (pyarrow.ArrowException, OSError) as problem:
        raise BadInput(f"{path.name}: this Parquet file is damaged near row {number + 1}", hint="write it anew") from problem


def _plain(row: dict[str, Any]) -> Row:
    """Columns that hold nothing count as left out, since a table has every column in every row."""
    return {key: value for key, value in row.items() if value is not None}
