"""Four numbers a row: what is the same as what, without keeping a row. Above two million rows they lie in files."""
from __future__ import annotations

import tempfile
import weakref
from array import array
from collections.abc import Iterator
from dataclasses import dataclass
from typing import IO, Any

import numpy as np
import numpy.typing as npt

IN_MEMORY = 2_000_000
PARTS = 16                               # of the rows on disk, looked at one part after another
STEP = 1 << 20
Numbers = npt.NDArray[np.uint64]


@dataclass(frozen=True, slots=True)
class Same:
    """Rows that are like an earlier one: how many, and the first of them as (line, line of the earlier one)."""

    count: int
    first: tuple[tuple[int, int], ...]


class Hashes:
    """`stamps`: of the whole row; `inputs`: of all but the answer, 0 where there is none; `lines`; `classes`: 0 for none."""

    def __init__(self, in_memory: int = IN_MEMORY) -> None:
        self._most = in_memory
        self.stamps, self.inputs = array("Q"), array("Q")
        self.lines, self.classes = array("Q"), array("Q")
        self._files: list[IO[bytes]] = []
        self._spilled = 0

    def __len__(self) -> int:
        return self._spilled + len(self.stamps)

    def add(self, stamp: int, given: int, line: int, klass: int) -> None:
        self.stamps.append(stamp)
        self.inputs.append(given)
        self.lines.append(line)
        self.classes.append(klass)
        if len(self.stamps) >= self._most:
            self._spill()

    def _spill(self) -> None:
        if not self._files:
            self._files = [tempfile.TemporaryFile(prefix="sealtune-hashes-") for _ in range(4)]  # noqa: SIM115
            weakref.finalize(self, _close, self._files)
        self._spilled += len(self.stamps)
        for file, numbers in zip(self._files, (self.stamps, self.inputs, self.lines, self.classes), strict=True):
            numbers.tofile(file)
            del numbers[:]

    @property
    def on_disk(self) -> bool:
        return bool(self._files)

    def column(self, name: str) -> Numbers:
        """All numbers of a kind, in the order of the rows."""
        if not self._files:
            return np.frombuffer(getattr(self, name), dtype=np.uint64) if len(self) else np.zeros(0, np.uint64)
        if self.stamps:
            self._spill()
        file = self._files[("stamps", "inputs", "lines", "classes").index(name)]
        file.flush()
        return np.memmap(file, dtype=np.uint64, mode="r")

    def duplicates(self, most: int) -> Same:
        """Rows whose like came before."""
        return self._same("stamps", most, lambda stamps: np.ones(len(stamps) - 1, bool))

    def contradictions(self, most: int) -> Same:
        """Rows with the input of an earlier one and another answer."""
        return self._same("inputs", most, lambda stamps: stamps[1:] != stamps[:-1])

    def _same(self, name: str, most: int, counts: Any) -> Same:
        count, first = 0, list[tuple[int, int]]()
        for keys, stamps, lines in self._parts(name):
            order = np.lexsort((lines, stamps, keys)) if name == "inputs" else np.lexsort((lines, keys))
            keys, stamps, lines = keys[order], stamps[order], lines[order]
            places = np.flatnonzero((keys[1:] == keys[:-1]) & counts(stamps))
            count += len(places)
            begins = np.flatnonzero(np.r_[True, keys[1:] != keys[:-1]])
            head = begins[np.searchsorted(begins, places, side="right") - 1]
            early, late = np.minimum(lines[head], lines[places + 1]), np.maximum(lines[head], lines[places + 1])
            for place in np.argsort(late, kind="stable")[:most]:
                first.append((int(late[place]), int(early[place])))
        return Same(count, tuple(sorted(first)[:most]))

    def _parts(self, name: str) -> Iterator[tuple[Numbers, Numbers, Numbers]]:
        """(keys, stamps, lines) such that equal keys come together; keys of 0 left out."""
        keys, stamps, lines = self.column(name), self.column("stamps"), self.column("lines")
        for part in range(PARTS if self.on_disk else 1):
            picked = [_pick(part if self.on_disk else None, keys[at:at + STEP], stamps[at:at + STEP], lines[at:at + STEP])
                      for at in range(0, len(keys), STEP)]
            found = [np.concatenate(columns) for columns in zip(*picked, strict=True)] if picked else []
            if found and len(found[0]) > 1:
                yield found[0], found[1], found[2]


def _close(files: list[IO[bytes]]) -> None:
    """They have no names, so that closing them is their end."""
    for file in files:
        file.close()


def _pick(part: int | None, keys: Numbers, stamps: Numbers, lines: Numbers) -> tuple[Numbers, Numbers, Numbers]:
    mine = keys != 0
    if part is not None:
        mine &= (keys >> np.uint64(60)) == part
    return keys[mine], stamps[mine], lines[mine]
