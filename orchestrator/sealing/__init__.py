"""age and zstd: plain files here become sealed files that a stranger may hold, and come back as bytes in memory.

pyrage holds the interpreter's lock for a whole call, so it runs in a child process (age_child.py). Identities
go to it over standard input, never as an argument, never through a file. The room must write no plaintext to a disk, keep
no key, and know neither node nor run: whether a file that does not open is fetched once more is for others to say.
"""
from __future__ import annotations

from .sealer import AgeSealer, open_sealed

__all__ = ["AgeSealer", "open_sealed"]
