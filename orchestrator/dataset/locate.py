"""Where in a line of JSON a value stands. Only asked once something is wrong with it."""
from __future__ import annotations

import json
import re

from .faults import Path

SPACE = re.compile(r"[ \t\r\n]*")
_DECODER = json.JSONDecoder(strict=False)


def column(text: str, path: Path) -> int:
    """The column, from 1, of the value at `path`; of the nearest object or list around it where it is not there.

    `text` is JSON that was read already."""
    place = _pass(text, 0)
    for step in path:
        inner = _inside(text, place, step)
        if inner is None:
            break
        place = inner
    return place + 1


def _pass(text: str, place: int) -> int:
    found = SPACE.match(text, place)
    return found.end() if found else place


def _inside(text: str, place: int, step: str | int) -> int | None:
    """Where the member `step` of the object or list at `place` begins."""
    opens = text[place:place + 1]
    if opens != ("{" if isinstance(step, str) else "["):
        return None
    place, number = _pass(text, place + 1), 0
    while text[place:place + 1] not in ("}", "]", ""):
        key: object = number
        if opens == "{":
            key, place = _DECODER.raw_decode(text, place)
            place = _pass(text, _pass(text, place) + 1)
        if key == step:
            return place
        _, place = _DECODER.raw_decode(text, place)
        place = _pass(text, place)
        if text[place:place + 1] == ",":
            place = _pass(text, place + 1)
        number += 1
    return None
