"""The person's rows: read, checked, split, and written once more as the trainer reads them.

Everything here streams; a file of any size takes the memory of its hashes. No row, key or value of the data
may end in a message, a warning or a log: a fault names a line and a kind, never the words of a row.
"""
from __future__ import annotations

from .datasets import Datasets

__all__ = ["Datasets"]
