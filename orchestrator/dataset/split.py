"""Which rows are held out: decided by the hash of what a row says, so that no order and no copy changes it."""
from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable

SALT = b"sealtune/split/1\0"
SHARE = 10                               # one row in ten
MOST = 500


def stamp(row: bytes) -> int:
    """The place of a row (canonical bytes) in the draw: 64 bits of a hash. Equal rows have equal stamps."""
    return int.from_bytes(hashlib.sha256(SALT + row).digest()[:8], "big")


def held_out(stamps: Iterable[int]) -> frozenset[int]:
    """The stamps whose rows are held out: about a tenth of the rows, at least one, at most MOST.

    Equal rows stay on one side, so a much repeated row is passed over. ValueError when fewer than two rows differ."""
    counts = Counter(stamps)
    if len(counts) < 2:
        raise ValueError("fewer than two different rows")
    wanted = max(1, min(MOST, sum(counts.values()) // SHARE))
    chosen, rows = set(), 0
    for s in sorted(counts):
        if rows + counts[s] <= wanted:
            chosen.add(s)
            rows += counts[s]
        if rows == wanted:
            break
    return frozenset(chosen or {min(counts, key=lambda s: (counts[s], s))})
