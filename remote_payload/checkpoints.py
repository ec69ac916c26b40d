"""When a checkpoint is due, and how its parts travel: a stored zip, held in memory, sealed by the publisher.

The rule is one of time, since lost work is paid by the hour. Nothing here touches a disk or knows a tensor:
the engine turns its state into bytes and back.
"""
from __future__ import annotations

import io
import json
import time
import zipfile
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from remote_payload.faults import BadCheckpoint

SCHEMA = "sealtune/checkpoint/1"
FACTS = "facts.json"


class Rule:
    """Due once `every` seconds have passed since the start or the last checkpoint; zero means never."""

    def __init__(self, every: int, clock: Callable[[], float] = time.monotonic) -> None:
        self._every, self._clock = every, clock
        self._last = clock()

    def due(self) -> bool:
        return self._every > 0 and self._clock() - self._last >= self._every

    def taken(self) -> None:
        self._last = self._clock()


@dataclass(frozen=True)
class Kept:
    """A checkpoint that came back: the number of steps done, tokens seen, and the engine's own parts."""

    step: int
    tokens: int
    parts: Mapping[str, bytes]


def pack(step: int, tokens: int, parts: Mapping[str, bytes]) -> bytes:
    """One archive of all parts, uncompressed (they are dense), with the facts in front."""
    blob = io.BytesIO()
    with zipfile.ZipFile(blob, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(FACTS, json.dumps({"schema": SCHEMA, "step": step, "tokens": tokens}))
        for name, content in parts.items():
            archive.writestr(name, content)
    return blob.getvalue()


def unpack(blob: bytes) -> Kept:
    """The reverse of `pack`. Raises BadCheckpoint."""
    try:
        with zipfile.ZipFile(io.BytesIO(blob)) as archive:
            parts = {name: archive.read(name) for name in archive.namelist()}
        facts = json.loads(parts.pop(FACTS))
        if facts["schema"] != SCHEMA:
            raise BadCheckpoint
        return Kept(int(facts["step"]), int(facts["tokens"]), parts)
    except (zipfile.BadZipFile, KeyError, ValueError, TypeError):
        raise BadCheckpoint from None
