"""The node's evaluation: base against adapter on held-out rows. Taken for what it is, a stranger's figures.

The document is rebuilt from the fields that are known, its numbers stay decimal text, its answers are written
with every character beyond ASCII escaped, so that no terminal ever acts on one.
"""
from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

from ..domain.document import parse
from ..domain.spool import Figures
from .safetensors import Unfit

SCHEMA = "sealtune/evaluation/1"
MOST_ROWS = 64
MOST_CHARACTERS = 1_000_000
DECIMAL = re.compile(r"\d{1,12}(\.\d{1,12})?")
NOTHING_TO_SAY = ("", "nan", "inf")
TEXTS = ("prompt", "expected", "base", "adapter")
NUMBERS = ("exact_match", "loss", "perplexity", "n")


@dataclass(frozen=True, slots=True)
class Evaluation:
    base: Figures
    adapter: Figures
    document: bytes                      # as it is kept: JSON, ASCII


def read_evaluation(raw: bytes) -> Evaluation:
    """Unfit when it is not the document that was agreed on."""
    try:
        tree = parse(raw, depth=4, values=16 * MOST_ROWS)
    except ValueError:                   # also what is not UTF-8
        raise Unfit("an evaluation that is not strict JSON") from None
    if not isinstance(tree, dict) or tree.keys() != {"schema", "rows", "base", "adapter"} or tree["schema"] != SCHEMA:
        raise Unfit("an evaluation of another schema")
    base, adapter = _side(tree["base"]), _side(tree["adapter"])
    kept = {"schema": SCHEMA, "rows": _rows(tree["rows"]), "base": base, "adapter": adapter}
    document = json.dumps(kept, indent=1, sort_keys=True, ensure_ascii=True).encode() + b"\n"
    return Evaluation(Figures(base["exact_match"], base["loss"]), Figures(adapter["exact_match"], adapter["loss"]),
                      document)


def _rows(rows: Any) -> list[dict[str, str]]:
    if not isinstance(rows, list) or len(rows) > MOST_ROWS:
        raise Unfit(f"an evaluation with more than {MOST_ROWS} rows, or none that can be read")
    return [_row(row) for row in rows]


def _row(row: Any) -> dict[str, str]:
    if not isinstance(row, dict) or row.keys() != set(TEXTS):
        raise Unfit("an evaluation with rows of other fields")
    if not all(isinstance(text, str) and len(text) <= MOST_CHARACTERS for text in row.values()):
        raise Unfit("an evaluation with rows that are not text")
    return {name: row[name] for name in TEXTS}


def _side(side: Any) -> dict[str, str]:
    if not isinstance(side, dict) or side.keys() != set(NUMBERS):
        raise Unfit("an evaluation with other figures")
    found = {name: _number(name, side[name]) for name in NUMBERS}
    if found["exact_match"] and not 0 <= float(found["exact_match"]) <= 1:
        raise Unfit("an evaluation with an exact match beyond 1")
    return found


def _number(name: str, text: Any) -> str:
    """A decimal as text; "" where there is nothing to say, which a figure that is no number amounts to."""
    if not isinstance(text, str) or not (DECIMAL.fullmatch(text) or text in NOTHING_TO_SAY):
        raise Unfit(f"an evaluation whose {name} is no decimal")
    return "" if text in NOTHING_TO_SAY else text
