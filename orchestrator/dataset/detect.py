"""Which format the rows have, by the keys of the first ones. The reading of all of them holds the others to it."""
from __future__ import annotations

from collections.abc import Iterator
from itertools import islice

from ..errors import BadInput
from . import formats
from .faults import Fault
from .source import Source

ROWS_TO_DETECT = 5
NEAR: tuple[tuple[frozenset[str], str], ...] = (         # keys of other tools, and which key of ours is meant
    (frozenset({"input", "output"}), "prompt, completion"), (frozenset({"query", "response"}), "prompt, completion"),
    (frozenset({"context", "response"}), "prompt, completion"), (frozenset({"content"}), "text"),
    (frozenset({"conversation"}), "messages"), (frozenset({"dialog"}), "messages"), (frozenset({"chosen"}), "messages"))


def detected(source: Source) -> str:
    """The one format of the first rows that can be read. BadInput where there is none, or several."""
    name, first = source.path.name, list(_first(source))
    if first and isinstance(first[0], BadInput):
        raise first[0]
    rows = [row for row in first if isinstance(row, dict)]
    seen = dict.fromkeys(filter(None, map(formats.detect, rows)))
    if len(seen) == 1:
        return next(iter(seen))
    if seen:
        raise BadInput(f"{name}: the first rows are of several formats ({', '.join(seen)})",
                       hint="bring all rows into one format")
    if not rows:
        raise BadInput(f"{name}: there are no rows", hint="one JSON object a line")
    meant = next((f"; for {', '.join(sorted(keys))} say {ours}" for keys, ours in NEAR if keys <= rows[0].keys()), "")
    raise BadInput(f"{name}: the format of the rows is not known", hint=f"the keys: {formats.known_formats()}{meant}")


def _first(source: Source) -> Iterator[formats.Row | BadInput | None]:
    for place, (number, row, raw) in enumerate(islice(source.rows(), ROWS_TO_DETECT)):
        if isinstance(row, Fault):
            yield BadInput(str(source.finding(number, raw, row)), hint=row.mend) if place == 0 else None
        else:
            yield row
