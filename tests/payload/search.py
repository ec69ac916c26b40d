"""A search of every file that a job could have written: for text, and for its tokens as integers."""
from __future__ import annotations

import os
import stat
from array import array
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

LARGEST = 300 << 20


def integers(ids: list[int]) -> list[bytes]:
    """A run of token ids as tensors and tables would hold it on this machine."""
    return [array(kind, ids).tobytes() for kind in ("i", "q")]


def newer_files(roots: Iterable[Path], since: float) -> Iterator[Path]:
    """Regular files whose content or inode changed after `since`; links are not followed."""
    for root in roots:
        for folder, _, names in os.walk(root):
            for name in names:
                path = Path(folder) / name
                try:
                    facts = path.lstat()
                except OSError:
                    continue
                if stat.S_ISREG(facts.st_mode) and facts.st_ctime >= since and facts.st_size <= LARGEST:
                    yield path


def hits(files: Iterable[Path], needles: Mapping[str, bytes]) -> list[tuple[str, Path]]:
    """(name of the needle, file) for every needle found in any of the files."""
    found = []
    for path in files:
        try:
            content = path.read_bytes()
        except OSError:
            continue
        found += [(name, path) for name, needle in needles.items() if needle in content]
    return found
