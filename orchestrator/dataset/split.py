"""Which rows are held out: decided by the hash of what a row says, so that no order and no copy changes it.

Rule 1 is kept for runs that began with it. Rule 2 also keeps near-duplicates on one side and gives each class its share.
"""
from __future__ import annotations

import hashlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping

SALT = b"sealtune/split/1\0"
SHARE = 10                               # one row in ten
MOST = 500
POOL = 50_000                            # rows with the smallest stamps, of which the held-out ones are taken
ENOUGH = 5                               # rows of a class, for one of them to be held out at least


def stamp(row: bytes) -> int:
    """The place of a row (canonical bytes) in the draw: 64 bits of a hash. Equal rows have equal stamps."""
    return int.from_bytes(hashlib.sha256(SALT + row).digest()[:8], "big")


def held_out(stamps: Iterable[int]) -> frozenset[int]:
    """Rule 1: the stamps whose rows are held out: about a tenth of the rows, at least one, at most MOST.

    Equal rows stay on one side, so a much repeated row is passed over. ValueError when fewer than two rows differ."""
    counts = Counter(stamps)
    if len(counts) < 2:
        raise ValueError("fewer than two different rows")
    chosen = _first(counts, wanted(sum(counts.values())))
    return frozenset(chosen or {min(counts, key=lambda s: (counts[s], s))})


def wanted(rows: int) -> int:
    return max(1, min(MOST, rows // SHARE))


def _first(weights: Mapping[int, int], most: int) -> set[int]:
    """Keys from the smallest on, as many as their weights let in."""
    chosen, rows = set(), 0
    for key in sorted(weights):
        if rows + weights[key] <= most:
            chosen.add(key)
            rows += weights[key]
        if rows == most:
            break
    return chosen


def held_out_2(pool: Mapping[int, int], classes: Mapping[int, int], families: Mapping[int, int],
               rows: int) -> frozenset[int]:
    """Rule 2: the same out of `pool` (stamp: copies), of `rows` rows in all. `classes`: stamp: class, or none at all;
    `families`: stamp: a stamp that stands for all that are nearly like it. ValueError when fewer than two rows differ."""
    if len(pool) < 2:
        raise ValueError("fewer than two different rows")
    members: dict[int, list[int]] = defaultdict(list)
    for one in pool:
        members[families.get(one, one)].append(one)
    units = {min(of): of for of in members.values()}
    if len(units) < 2:                   # all are nearly the same
        units = {one: [one] for one in pool}
    weights = {key: sum(pool[one] for one in of) for key, of in units.items()}
    chosen = set[int]()
    for keys, most in _strata(weights, classes, wanted(rows)):
        chosen |= _first({key: weights[key] for key in keys}, most)
    if not chosen:
        chosen = {min(weights, key=lambda key: (weights[key], key))}
    return frozenset(one for key in chosen for one in units[key])


def _strata(weights: Mapping[int, int], classes: Mapping[int, int], most: int) -> list[tuple[list[int], int]]:
    """(keys of a class, how many rows of it are held out): shares by largest remainder, one for each that has enough."""
    if not classes:
        return [(list(weights), most)]
    strata: dict[int, list[int]] = defaultdict(list)
    for key in sorted(weights):
        strata[classes.get(key, 0)].append(key)
    total = sum(weights.values())
    sizes = {name: sum(weights[key] for key in keys) for name, keys in strata.items()}
    quotas = {name: most * size // total for name, size in sizes.items()}
    for name, size in sizes.items():
        if not quotas[name] and size >= ENOUGH and len(strata[name]) > 1 and len(strata) <= most:
            quotas[name] = 1
    for name in sorted(sizes, key=lambda name: (-(most * sizes[name] % total), name)):
        if sum(quotas.values()) < most:
            quotas[name] += 1
    return [(strata[name], quota) for name, quota in quotas.items() if quota]
