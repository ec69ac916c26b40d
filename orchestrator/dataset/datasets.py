"""The Datasets port: check a file, and write its rows for the trainer into the run's folder."""
from __future__ import annotations

import os
import re
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from ..domain.document import canonical
from ..domain.names import Digest
from ..domain.training import DataFile, DatasetFacts
from ..errors import BadInput
from . import formats, split
from .formats import Row
from .lines import Fault, Lines, parse

SCHEMA = "sealtune/rows/1"
NAME = "rows.jsonl"
FEWEST, FEW, MOST_TOLD, ROWS_TO_DETECT = 2, 200, 10, 5
CANARY = re.compile(r"[0-9a-f]{16,128}")


@dataclass(frozen=True, slots=True)
class Found:
    """What one reading of the file found."""

    format: str
    digest: Digest
    stamps: array[int]                   # of every row, in order; eight bytes a row
    rows_with_further_keys: int


class Datasets:
    """`home` is the run's own folder; the rows lie there only between `rows` and `forget`."""

    def __init__(self, home: Path) -> None:
        self._rows = home / NAME
        self._drawn: dict[Digest, frozenset[int]] = {}       # spares `rows` a reading that `check` has done

    def check(self, file: DataFile) -> DatasetFacts:
        """Read every line; BadInput names the first faulty ones. Splits by stable hash."""
        path = Path(file.path)
        found = _read(path, file.format)
        chosen = self._drawn[found.digest] = _chosen(path, found)
        rows = len(found.stamps)
        held_out = sum(s in chosen for s in found.stamps)
        return DatasetFacts(found.digest, found.format, formats.kind_of(found.format), rows, rows - held_out, held_out,
                            _warnings(found), file.path)

    def rows(self, facts: DatasetFacts, canary: str) -> Path:
        """Write the rows as the trainer reads them (header with the canary first), 0600, and return where.

        BadInput when the file is not the one that was checked."""
        if not CANARY.fullmatch(canary):
            raise ValueError("a canary is 16 to 128 hex digits")
        path, part = Path(facts.path), self._rows.with_suffix(".part")
        part.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _erase(part)
        if facts.digest not in self._drawn:
            found = _read(path, facts.format)
            _must_be(facts, found.digest)
            self._drawn[found.digest] = _chosen(path, found)
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as out:
                _must_be(facts, _write(out, path, facts, self._drawn[facts.digest], canary))
                out.flush()
                os.fsync(out.fileno())
        except BaseException:
            _erase(part)
            raise
        part.replace(self._rows)
        return self._rows

    def forget(self) -> None:
        """Overwrite and remove what `rows` wrote; gone already is success."""
        _erase(self._rows)
        _erase(self._rows.with_suffix(".part"))


def _must_be(facts: DatasetFacts, digest: Digest) -> None:
    if digest != facts.digest:
        raise BadInput(f"{Path(facts.path).name} is not the file that was checked: it has changed since",
                       hint="bring the old file back, or start a new run")


def _write(out: BinaryIO, path: Path, facts: DatasetFacts, chosen: frozenset[int], canary: str) -> Digest:
    header = {"schema": SCHEMA, "kind": facts.kind, "canary": canary, "train": facts.train, "held_out": facts.held_out}
    out.write(canonical(header) + b"\n")
    lines = Lines(path)
    for number, line in lines:
        row = _converted(path, number, line, facts.format)
        side = "held_out" if split.stamp(formats.spell(row)) in chosen else "train"
        out.write(canonical({"split": side, **row}) + b"\n")
    return lines.digest


def _converted(path: Path, number: int, line: bytes, format: str) -> Row:
    try:
        return formats.convert(format, parse(number, line))
    except Fault as fault:               # it was good a moment ago: the file changes while it is read
        raise BadInput(f"{path.name}:{number}: {fault}") from None


def _erase(path: Path) -> None:
    if path.is_symlink() or not path.exists():
        path.unlink(missing_ok=True)
        return
    with path.open("r+b") as file:
        left = os.fstat(file.fileno()).st_size
        while left > 0:
            left -= file.write(bytes(min(left, 1 << 20)))
        file.flush()
        os.fsync(file.fileno())
    path.unlink()


# ---- one reading ------------------------------------------------------------------------------------------


def _read(path: Path, format: str) -> Found:
    """Every line, checked; stops at the tenth faulty one. BadInput lists them."""
    format = _detected(path) if format == "auto" else format
    lines, stamps, faults, further = Lines(path), array("Q"), list[str](), 0
    for number, line in lines:
        try:
            row = parse(number, line)
            stamps.append(split.stamp(formats.spell(formats.convert(format, row))))
            further += bool(formats.further_keys(format, row))
        except Fault as fault:
            faults.append(f"{path.name}:{number}: {fault}")
            if len(faults) == MOST_TOLD:
                faults.append("and perhaps more")
                break
    if faults:
        raise BadInput("; ".join(faults), hint="correct these lines; one JSON object a line, in one format")
    if len(stamps) < FEWEST:
        raise BadInput(f"{path.name}: rows: {len(stamps)}; at least {FEWEST} are needed, one of them to hold out",
                       hint="a few hundred checked examples are enough")
    return Found(format, lines.digest, stamps, further)


def _detected(path: Path) -> str:
    """The one format of the first rows that can be read. The reading of all of them holds the others to it."""
    seen = dict.fromkeys(filter(None, _first_formats(path)))
    if len(seen) == 1:
        return next(iter(seen))
    if seen:
        raise BadInput(f"{path.name}: the first rows are of several formats ({', '.join(seen)})",
                       hint="bring all rows into one format")
    raise BadInput(f"{path.name}: the format of the rows is not known, or there are none",
                   hint=f"rows have the keys of one format; {formats.known_formats()}")


def _first_formats(path: Path) -> Iterator[str | None]:
    for place, (number, line) in enumerate(Lines(path)):
        if place == ROWS_TO_DETECT:
            return
        try:
            yield formats.detect(parse(number, line))
        except Fault as fault:
            if place == 0:
                raise BadInput(f"{path.name}:{number}: {fault}",
                               hint="one JSON object a line, UTF-8") from None


def _chosen(path: Path, found: Found) -> frozenset[int]:
    try:
        return split.held_out(found.stamps)
    except ValueError:
        raise BadInput(f"{path.name}: all {len(found.stamps)} rows are the same, none can be held out") from None


def _warnings(found: Found) -> tuple[str, ...]:
    rows, copies = len(found.stamps), len(found.stamps) - len(set(found.stamps))
    warnings = []
    if rows < FEW:
        warnings.append(f"only {rows} rows; a few hundred checked examples are enough, fewer often are not")
    if copies:
        warnings.append(f"{copies} of {rows} rows are copies of others")
    if found.rows_with_further_keys:
        warnings.append(f"{found.rows_with_further_keys} of {rows} rows have further keys, which are not used")
    return tuple(warnings)
