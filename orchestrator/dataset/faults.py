"""What can be wrong with data, and how it is told: a place, what it is, and how to mend it; never a word of a row.

A fault ends the check (exit 2), since no trainer could use the row. A doubt is something to look at; a note is only said.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

Path = tuple[str | int, ...]             # keys and positions (from 0) from a row down to a value
SHOWN = 20                               # findings of one code that are told one by one


class Weight(StrEnum):
    FAULT = "fault"
    DOUBT = "doubt"
    NOTE = "note"


class Fault(Exception):
    """What is wrong with one row, in words that show nothing of it. `path`: where in the row; `column`: where in its line,
    from 1, where that is known already; `up`: lines below the row's first one."""

    def __init__(self, what: str, mend: str = "", path: Path = (), column: int = 0, down: int = 0) -> None:
        super().__init__(what)
        self.mend, self.path, self.column, self.down = mend, path, column, down


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing found at one place. `line` 0: it is about the whole file; `column` 0: about the whole line."""

    weight: Weight
    code: str
    file: str
    line: int
    column: int
    what: str
    mend: str

    def __str__(self) -> str:
        place = ":".join([self.file, *[str(n) for n in (self.line, self.column) if n]])
        return f"{place}: {self.what}"


@dataclass(slots=True)
class Tally:
    """Findings by code: all counted, the first ones kept."""

    counts: dict[str, int] = field(default_factory=dict)
    kept: list[Finding] = field(default_factory=list)

    def add(self, finding: Finding, times: int = 1) -> None:
        """`times`: how many there are of this one, where they come counted."""
        seen = self.counts.get(finding.code, 0)
        self.counts[finding.code] = seen + times
        if seen < SHOWN:
            self.kept.append(finding)

    def of(self, weight: Weight) -> list[Finding]:
        """In the order of their lines."""
        return sorted((f for f in self.kept if f.weight is weight), key=lambda f: (f.line, f.column, f.code))

    @property
    def faults(self) -> list[Finding]:
        return self.of(Weight.FAULT)
