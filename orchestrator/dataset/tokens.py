"""Rows in the model's own tokens, where its tokenizer is at hand: how long they are, and what a limit would cut.

Nothing is fetched: a tokenizer is at hand in a folder, in the hub library's cache, or in the lab. Otherwise it is said why
nothing was counted.
"""
from __future__ import annotations

import json
import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .faults import Fault, Finding, Tally, Weight
from .formats import Row
from .template import Render, compiled

if TYPE_CHECKING:
    from tokenizers import Tokenizer

AT_ONCE = 256
SPECIAL = ("bos_token", "eos_token", "pad_token", "unk_token")
MAX_LENGTH = 1024                        # what is trained on where the run file says nothing


@dataclass(slots=True)
class Tokens:
    """`why`: why nothing was counted, "" where it was. `lengths`: of the rows that were looked into."""

    model: str = ""
    max_length: int = MAX_LENGTH
    why: str = ""
    lengths: list[int] = field(default_factory=list)
    cut: int = 0                         # rows longer than the limit
    lost: int = 0                        # of these, rows whose answer begins behind it: nothing of them is learned

    def average(self) -> int:
        """Of a row, after the cut, rounded up; 0 where nothing was counted."""
        kept = sum(min(length, self.max_length) for length in self.lengths)
        return 0 if self.why or not self.lengths else -(-kept // len(self.lengths))

    def told(self) -> str:
        """One line for a run's page."""
        if self.why:
            return f"tokens not counted: {self.why}"
        lost = f", {self.lost} of them lose their answer" if self.lost else ""
        return (f"{sum(self.lengths)} tokens in {len(self.lengths)} rows, the longest has {max(self.lengths, default=0)}; "
                f"{self.cut} are cut at {self.max_length}{lost}")


class Counter:
    """Counts rows as they come. `name`: a folder with tokenizer.json, or a hub id that is looked for in `places`."""

    def __init__(self, name: str, max_length: int | None = None, places: Sequence[Path] = ()) -> None:
        self.found = Tokens(name, max_length or MAX_LENGTH)
        self._waiting: list[tuple[int, Row, str]] = []
        self._tokenizer: Tokenizer | None = None
        self._render: Render | None = None
        self._end = ""
        folder = find(name, places) if name else None
        if not name:
            self.found.why = "no model is named"
        elif folder is None:
            self.found.why = f"the tokenizer of {name} is not on this machine"
        else:
            self._load(folder)

    def _load(self, folder: Path) -> None:
        try:
            from tokenizers import Tokenizer

            tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
            template, special = _described(folder)
            self._end = special["eos_token"]
            self._render = compiled(template, special) if template else None
        except ImportError:
            self.found.why = 'it needs: python -m pip install "sealtune[tokens]"'
        except Exception:  # noqa: BLE001 why: the library raises bare Exception for a file that is none
            self.found.why = f"the tokenizer in {folder.name} cannot be read"
        else:
            tokenizer.no_truncation()
            tokenizer.no_padding()
            self._tokenizer = tokenizer

    def spelled(self, row: Row) -> str | None:
        """The row as the model sees it; None where that is not known. Fault where its template refuses it."""
        if self._tokenizer is None or ("text" not in row and self._render is None):
            return None
        if "text" in row:
            text: str = row["text"]
            return text if text.endswith(self._end) else text + self._end
        assert self._render
        return self._render(row["messages"])

    def previews(self, rows: Iterable[Row]) -> tuple[str, ...]:
        """Rows as the model sees them, or turn by turn where its template is not at hand."""
        return tuple(self.spelled(row) or _turns(row) for row in rows)

    def count(self, rows: Iterable[tuple[int, Row]], tally: Tally, file: str) -> Tokens:
        """All of them; rows that the template refuses, or that lose their answer, are found."""
        if self._tokenizer is None:
            return self.found
        for line, row in rows:
            try:
                text = self.spelled(row)
            except Fault as fault:
                tally.add(Finding(Weight.FAULT, "template", file, line, 0, str(fault), fault.mend))
                continue
            if text is None:
                self.found.why = f"{self.found.model} has no chat template"
                return self.found
            self._waiting.append((line, row, text))
            if len(self._waiting) == AT_ONCE:
                self._flush(tally, file)
        self._flush(tally, file)
        return self.found

    def _flush(self, tally: Tally, file: str) -> None:
        assert self._tokenizer
        for whole in (True, False):      # text gets the tokenizer's own begin, a template writes it itself
            group = [one for one in self._waiting if ("text" in one[1]) is whole]
            made = self._tokenizer.encode_batch([text for _, _, text in group], add_special_tokens=whole)
            for (line, row, _), encoded in zip(group, made, strict=True):
                self._one(line, row, len(encoded.ids), tally, file)
        self._waiting.clear()

    def _one(self, line: int, row: Row, length: int, tally: Tally, file: str) -> None:
        limit = self.found.max_length
        self.found.lengths.append(length)
        if length <= limit:
            return
        self.found.cut += 1
        lost = "text" not in row and self._before(row) >= limit
        self.found.lost += lost
        what = f"{length} tokens, cut at {limit}" + (": nothing of the answer is left" if lost else "")
        tally.add(Finding(Weight.DOUBT, "too-long", file, line, 0, what, "raise `max_length:`, or shorten the row"))

    def _before(self, row: Row) -> int:
        assert self._tokenizer and self._render
        try:
            text = self._render(row["messages"][:-1], add_generation_prompt=True)
        except Fault:
            return 0
        return len(self._tokenizer.encode(text, add_special_tokens=False).ids)


def _turns(row: Row) -> str:
    return row["text"] if "text" in row else "\n".join(f"[{turn['role']}] {turn['content']}" for turn in row["messages"])


def find(name: str, places: Sequence[Path] = ()) -> Path | None:
    """The folder with a model's tokenizer.json: `name` itself, or below one of the places, or in the hub library's cache."""
    home = Path(os.environ.get("HF_HOME") or "~/.cache/huggingface").expanduser()
    cache = Path(os.environ.get("HF_HUB_CACHE") or home / "hub")
    candidates = [Path(name).expanduser(), *[place / name for place in places if ".." not in name]]
    snapshots = cache / f"models--{name.replace('/', '--')}" / "snapshots"
    if snapshots.is_dir():
        candidates += sorted(snapshots.iterdir(), key=lambda p: p.stat().st_mtime, reverse=True)
    return next((folder for folder in candidates if (folder / "tokenizer.json").is_file()), None)


def _described(folder: Path) -> tuple[str, dict[str, str]]:
    """(chat template or "", special tokens by name), as the model's files have them."""
    try:
        said: dict[str, Any] = json.loads((folder / "tokenizer_config.json").read_bytes())
    except FileNotFoundError:
        said = {}
    special = {name: (said.get(name) or {}).get("content", "") if isinstance(said.get(name), dict) else said.get(name) or ""
               for name in SPECIAL}
    template = said.get("chat_template") or ""
    if isinstance(template, list):
        template = next((t["template"] for t in template if t.get("name") == "default"), "")
    apart = folder / "chat_template.jinja"
    return (apart.read_text() if apart.is_file() else str(template)), special
