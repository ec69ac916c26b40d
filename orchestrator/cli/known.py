"""What is known of a dataset before a run file is written: read by the dataset room, told in a few figures."""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import BadInput

if TYPE_CHECKING:
    from ..dataset.check import Checked
    from ..settings.values import Settings

DATASETS = ("*.jsonl", "*.jsonl.gz", "*.jsonl.zst", "*.csv", "*.parquet", "*.json")
CHARACTERS_PER_TOKEN = 3                 # few: what is guessed is a bound


@dataclass(frozen=True, slots=True)
class Lengths:
    """Of rows, in tokens. `counted`: by the model's own tokenizer, else guessed from characters."""

    average: int
    longest: int
    counted: bool


def only_dataset(folder: Path) -> str:
    """The one that lies there; "" where there is none, or more than one."""
    found = sorted({path.name for pattern in DATASETS for path in folder.glob(pattern) if path.is_file()}
                   - {"sealtune.schema.json"})
    return found[0] if len(found) == 1 else ""


def read(path: Path, format: str = "auto") -> Checked:
    """Every row, judged. BadInput names the first faults."""
    from ..dataset.check import check
    from ..dataset.datasets import must_be_sound
    from ..dataset.formats import FORMATS

    if format not in ("auto", *FORMATS):
        raise BadInput(f"--format {format!r} is not known", hint=f"one of auto, {', '.join(FORMATS)}")
    found = check(path, format)
    must_be_sound(found)
    return found


def doubts(found: Checked) -> list[str]:
    """What deserves a look before anything is paid, by its codes."""
    from ..dataset.faults import Weight

    return sorted({one.code for one in found.tally.of(Weight.DOUBT)})


def labelled(found: Checked) -> bool:
    """The answers fall into classes; of text, its labels do. Labels beside an answer say nothing of it."""
    cover = found.content.coverage
    return bool(cover and cover.classes and cover.labelled == (found.kind == "text"))


def lengths(found: Checked, model: str, settings: Settings) -> Lengths:
    """In the model's tokens, where its tokenizer is on this machine."""
    from ..dataset.check import count_tokens
    from ..dataset.tokens import Counter

    tokens = count_tokens(found, Counter(model, 1 << 20, (settings.state / "lab" / "hub",)))
    if not tokens.why:
        return Lengths(tokens.average(), max(tokens.lengths, default=0), True)
    seen = found.structure
    asked = max((1 << bits for bits, rows in enumerate(seen.asked) if rows), default=0)
    average = max(8, seen.characters // max(1, found.rows) // CHARACTERS_PER_TOKEN)
    return Lengths(average, max(average, (asked + seen.longest) // CHARACTERS_PER_TOKEN), False)
