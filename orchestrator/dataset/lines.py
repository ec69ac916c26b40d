"""A file as numbered lines of strict JSON, hashed while it is read. Knows nothing about formats."""
from __future__ import annotations

import hashlib
import json
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..domain.document import must_be_shallow
from ..domain.names import Digest
from ..errors import BadInput

MOST_LINE_BYTES = 4 * 1024 * 1024
MOST_DEPTH = 8
MAGIC = ((b"\x1f\x8b", "gzip"), (b"PK\x03\x04", "zip"), (b"PAR1", "parquet"), (b"\x28\xb5\x2f\xfd", "zstd"),
         (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


class Fault(Exception):
    """What is wrong with one line, in words that show nothing of it."""


class Number:
    """A JSON number. Its value is never needed, so it is never made: no float, no integer of a million digits."""

    def __init__(self, text: str) -> None: ...


class Lines:
    """Lines of a file from number 1, blank ones left out. `digest` is of all bytes, once the reading is done."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._hash = hashlib.sha256()

    @property
    def digest(self) -> Digest:
        return Digest("sha256:" + self._hash.hexdigest())

    def __iter__(self) -> Iterator[tuple[int, bytes]]:
        """(number, bytes without the end of line). A line over the limit comes cut: `parse` refuses it."""
        self._hash = hashlib.sha256()
        try:
            must_be_a_file(self.path)
            with self.path.open("rb") as file:
                number = 0
                while line := file.readline(MOST_LINE_BYTES + 2):
                    number += 1
                    self._hash.update(line)
                    if len(line) == MOST_LINE_BYTES + 2 and not line.endswith(b"\n"):
                        self._skip(file)
                    if line.strip():
                        yield number, line.rstrip(b"\r\n")
        except OSError as problem:
            raise BadInput(f"{self.path}: {(problem.strerror or 'cannot be read').lower()}",
                           hint="name the dataset in the run file, relative to it") from problem

    def _skip(self, file: Any) -> None:
        while piece := file.readline(MOST_LINE_BYTES):
            self._hash.update(piece)
            if piece.endswith(b"\n"):
                return


def must_be_a_file(path: Path) -> None:
    if not stat.S_ISREG(path.stat().st_mode):
        kind = "a folder" if path.is_dir() else "no ordinary file"
        raise BadInput(f"{path}: a dataset is one file of JSON lines, this is {kind}",
                       hint="name the file itself in `dataset:` of the run file")


def parse(number: int, line: bytes) -> dict[str, Any]:
    """The object on a line. Fault for anything else."""
    if len(line) > MOST_LINE_BYTES:
        raise Fault(f"longer than {MOST_LINE_BYTES // 1024 // 1024} MiB")
    text = _text(number, line)
    try:
        must_be_shallow(line, MOST_DEPTH)
    except ValueError as problem:
        raise Fault(str(problem)) from None
    try:
        tree = json.loads(text, object_pairs_hook=_no_twins, parse_constant=_no_constant,
                          parse_int=Number, parse_float=Number)
    except json.JSONDecodeError as problem:
        raise Fault(f"not JSON at column {problem.colno}") from None
    if isinstance(tree, list):
        raise Fault("a JSON array, one object a line is needed")
    if not isinstance(tree, dict):
        raise Fault("not a JSON object")
    if _depth(tree, MOST_DEPTH + 1) > MOST_DEPTH:
        raise Fault("nested too deep")
    return tree


def _text(number: int, line: bytes) -> str:
    if number == 1:
        if line.startswith(b"\xef\xbb\xbf"):
            raise Fault("starts with a byte order mark (BOM), save the file as UTF-8 without it")
        for magic, name in MAGIC:
            if line.startswith(magic):
                raise Fault(f"this is a {name} file, plain UTF-8 JSON lines are needed")
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as problem:
        raise Fault(f"not UTF-8 at byte {problem.start + 1}") from None


def _no_twins(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        raise Fault("a key is there twice")
    return tree


def _no_constant(text: str) -> Any:
    raise Fault(f"{text} is not JSON")


def _depth(tree: Any, most: int) -> int:
    """How deep the tree is; counting stops at `most`."""
    if most <= 0 or not isinstance(tree, dict | list):
        return 0
    parts = tree.values() if isinstance(tree, dict) else tree
    return 1 + max((_depth(part, most - 1) for part in parts), default=0)
