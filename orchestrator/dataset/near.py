"""Rows that are nearly the same: MinHash over runs of three words, and every pair that it proposes looked at again.

What many rows share, an instruction or a form, says nothing about likeness and is left out first.
"""
from __future__ import annotations

import re
import zlib
from collections import defaultdict
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|\w+|[^\w\s.,!?;:\"'\u2026]")
MOST_WORDS = 2000                        # of a text; further ones are not looked at
MOST_RUNS = 256                          # kept of a text, the smallest hashes: a fair sample of all
FEWEST_RUNS = 5                          # of its own, for a text to be compared by them
SHARED = 0.05                            # of the rows: runs in more of them are a form's, not a row's
ALIKE, UNLIKE = 0.8, 0.3
BANDS, DEEP = 16, 4
MOST_VOCABULARY = 500_000
Runs = npt.NDArray[np.uint32]
Ints = npt.NDArray[np.int64]


class Texts:
    """Texts as word runs and one number each, kept without their words."""

    def __init__(self) -> None:
        self.runs: list[Runs] = []
        self.spelled: list[int] = []     # the text without case, punctuation and spacing
        self.figures: list[int] = []     # its numbers: with other ones it is another case, however alike
        self._numbers: dict[str, int] = {}

    def add(self, text: str) -> list[str]:
        """The text's words."""
        words = WORD.findall(text.casefold())[:MOST_WORDS]
        if len(self._numbers) > MOST_VOCABULARY:
            self._numbers.clear()
        known = self._numbers
        ids = [known[w] if w in known else known.setdefault(w, zlib.crc32(w.encode("utf-8", "replace"))) for w in words]
        numbers = np.array(ids, dtype=np.uint64)
        self.runs.append(_runs(numbers))
        self.spelled.append(hash(tuple(ids) or text))
        self.figures.append(hash(tuple(sorted(w for w in words if any(map(str.isdigit, w))))))
        return words


def _runs(words: npt.NDArray[np.uint64]) -> Runs:
    if len(words) < 3:
        return np.zeros(0, np.uint32)
    mixed = words[:-2] * np.uint64(0x9E3779B97F4A7C15) + words[1:-1] * np.uint64(0xC2B2AE3D27D4EB4F)
    mixed = (mixed + words[2:] * np.uint64(0x165667B19E3779F9)) * np.uint64(0xFF51AFD7ED558CCD)
    return np.unique((mixed >> np.uint64(32)).astype(np.uint32))[:MOST_RUNS]


def without_forms(texts: list[Runs]) -> list[Runs]:
    """The same without the runs that many texts share."""
    if not texts:
        return []
    every, counts = np.unique(np.concatenate(texts), return_counts=True)
    forms = every[counts > max(3, int(len(texts) * SHARED))]
    return [runs[~np.isin(runs, forms, assume_unique=True)] for runs in texts] if len(forms) else texts


def alike(a: Runs, b: Runs) -> float:
    """The share of runs that two texts have in common."""
    both = len(np.intersect1d(a, b, assume_unique=True))
    return both / (len(a) + len(b) - both) if both else 0.0


def pairs(texts: Texts) -> list[tuple[int, int]]:
    """Places of texts that are nearly the same, the earlier one first; each later text with one earlier one, or few."""
    found = {(first, later) for same in _groups(texts.spelled) for first, later in pairwise(same)}
    own, figures = without_forms(texts.runs), texts.figures
    places = [n for n, runs in enumerate(own) if len(runs) >= FEWEST_RUNS]
    if len(places) > 1:
        for a, b in _proposed(own, places):
            if figures[a] == figures[b] and alike(own[a], own[b]) >= ALIKE:
                found.add((a, b))
    return sorted(found, key=lambda pair: (pair[1], pair[0]))


def _groups(keys: list[int]) -> list[list[int]]:
    groups: dict[int, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        groups[key].append(place)
    return [group for group in groups.values() if len(group) > 1]


def _proposed(own: list[Runs], places: list[int]) -> set[tuple[int, int]]:
    """Pairs that agree in one band of the signature at least."""
    flat = np.concatenate([own[n] for n in places]).astype(np.uint64)
    begins = np.cumsum([0] + [len(own[n]) for n in places[:-1]])
    chance = np.random.default_rng(1)
    found: set[tuple[int, int]] = set()
    for _ in range(BANDS):
        key = np.zeros(len(places), np.uint64)
        for factor, offset in chance.integers(1, 1 << 61, size=(DEEP, 2), dtype=np.uint64):
            smallest = np.minimum.reduceat((flat * (factor | np.uint64(1)) + offset) >> np.uint64(20), begins)
            key = (key ^ smallest) * np.uint64(0x9E3779B97F4A7C15)
        order = np.argsort(key, kind="stable")
        for here in np.flatnonzero(key[order[1:]] == key[order[:-1]]):
            a, b = places[order[here]], places[order[here + 1]]
            found.add((min(a, b), max(a, b)))
    return found


@dataclass(slots=True)
class Families:
    """Places that belong together, by pairs."""

    parents: list[int]

    @classmethod
    def of(cls, count: int, joined: list[tuple[int, int]]) -> Families:
        made = cls(list(range(count)))
        for a, b in joined:
            a, b = made.head(a), made.head(b)
            made.parents[max(a, b)] = min(a, b)
        return made

    def head(self, place: int) -> int:
        while self.parents[place] != place:
            self.parents[place] = self.parents[self.parents[place]]
            place = self.parents[place]
        return place
