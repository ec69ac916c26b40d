"""The Datasets port: check a file, and write its rows for the trainer into the run's folder."""
from __future__ import annotations

import os
import re
from collections.abc import Sequence
from pathlib import Path
from typing import BinaryIO

from ..domain.document import canonical
from ..domain.names import Digest
from ..domain.training import DataFile, DatasetFacts
from ..errors import BadInput
from . import formats, split, structure
from .check import RULE, Checked, check, count_tokens
from .faults import Fault, Weight
from .source import Source
from .tokens import Counter

SCHEMA = "sealtune/rows/1"
NAME = "rows.jsonl"
MOST_TOLD = 10
WARNED = {                               # doubts that a run says again, counted
    "duplicate": "{0} of {1} rows are copies of others", "near-duplicate": "{0} of {1} rows are nearly copies of others",
    "contradiction": "{0} of {1} rows contradict another row", "cut": "{0} of {1} answers seem to be cut",
    "near-contradiction": "{0} of {1} rows nearly contradict another row", "fence": "{0} of {1} answers seem to be cut",
    "too-long": "{0} of {1} rows are cut",
    "marker": "{0} of {1} rows have a chat template's marker in their text", "hollow": "{0} of {1} answers are placeholders",
    "garbled": "{0} of {1} rows have garbled letters", "rare-class": "{0} classes are rare in {1} rows",
}
CANARY = re.compile(r"[0-9a-f]{16,128}")


class Datasets:
    """`home` is the run's own folder; the rows lie there only between `rows` and `forget`. `model`: whose tokens are
    counted, `max_length`: what is longer is cut, `places`: folders where tokenizers may be."""

    def __init__(self, home: Path, model: str = "", max_length: int | None = None, places: Sequence[Path] = ()) -> None:
        self._counted = (model, max_length, places)
        self._rows = home / NAME
        self._chosen: dict[Digest, frozenset[int]] = {}       # spares `rows` a reading that `check` has done

    def check(self, file: DataFile) -> DatasetFacts:
        """Read every line; BadInput names the first faulty ones. Splits by stable hash."""
        path = Path(file.path)
        found = _sound(path, file.format)
        tokens = count_tokens(found, Counter(*self._counted))
        must_be_sound(found)
        self._chosen[found.source.digest] = found.chosen
        return DatasetFacts(found.source.digest, found.structure.format, found.kind, found.rows,
                            found.rows - found.held_out, found.held_out, _warnings(found), file.path, RULE, tokens.told(),
                            tokens.average())

    def rows(self, facts: DatasetFacts, canary: str) -> Path:
        """Write the rows as the trainer reads them (header with the canary first), 0600, and return where.

        BadInput when the file is not the one that was checked."""
        if not CANARY.fullmatch(canary):
            raise ValueError("a canary is 16 to 128 hex digits")
        path, part = Path(facts.path), self._rows.with_suffix(".part")
        part.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        _erase(part)
        if facts.digest not in self._chosen:
            digest, chosen = _drawn(path, facts)
            _must_be(facts, digest)
            self._chosen[digest] = chosen
        try:
            with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as out:
                _must_be(facts, _write(out, path, facts, self._chosen[facts.digest], canary))
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
    source = Source(path)
    for number, row, raw in source.rows():
        try:
            if isinstance(row, Fault):
                raise row
            made = formats.convert(facts.format, row)
            side = "held_out" if split.stamp(formats.spell(made)) in chosen else "train"
        except Fault as fault:           # it was good a moment ago: the file changes while it is read
            raise BadInput(str(source.finding(number, raw, fault))) from None
        out.write(formats.spell({"split": side, **made}) + b"\n")
    return source.digest


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


def _sound(path: Path, format: str) -> Checked:
    """Every row, checked. BadInput lists the first faulty ones."""
    found = check(path, format)
    must_be_sound(found)
    return found


def must_be_sound(found: Checked) -> None:
    if faults := found.tally.faults:
        told = [str(fault) for fault in faults[:MOST_TOLD]]
        rest = sum(found.tally.counts[code] for code in {fault.code for fault in faults}) - len(told)
        raise BadInput("; ".join(told) + (f"; and {rest} more" if rest else ""),
                       hint=f"{faults[0].mend}; sealtune data check {found.source.path.name} tells all of them")


def _drawn(path: Path, facts: DatasetFacts) -> tuple[Digest, frozenset[int]]:
    """The file's digest, and which rows are held out, by the rule that the run began with."""
    if facts.split == RULE:
        found = _sound(path, facts.format)
        return found.source.digest, found.chosen
    source = Source(path)
    stamps = structure.examine(source, facts.format, doubts=False).hashes.column("stamps")
    return source.digest, split.held_out(stamps.tolist())


def _warnings(found: Checked) -> tuple[str, ...]:
    """In one line each, without a place: the journal is to be shown."""
    notes = [note.what for note in found.tally.of(Weight.NOTE)]
    return tuple(notes + [WARNED[code].format(count, found.rows) for code, count in found.tally.counts.items()
                          if code in WARNED])
