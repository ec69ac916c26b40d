"""Datasets of one's own for the journeys: invented parcels, each row with words that stand nowhere else."""
from __future__ import annotations

from typing import Any

DOCKS = ("Alder", "Birch", "Cedar", "Dogwood", "Elm", "Fir", "Gorse")


def parcels(rows: int = 60) -> list[dict[str, Any]]:
    """Chats about parcels; no two rows alike."""
    return [{"messages": [{"role": "system", "content": "Answer with the dock."},
                          {"role": "user", "content": f"Parcel {marker(n)}, {3 + n % 17} kg: which dock?"},
                          {"role": "assistant", "content": f"{DOCKS[n * 31 % 7]}-{n * 17 % 97:02d}"}]} for n in range(rows)]


def marker(n: int) -> str:
    """A word of row n alone."""
    return f"zeisig-{(n + 1) * 1_000_003 % 9_999_991:07d}-kranich"


def markers(rows: int) -> dict[str, bytes]:
    """Some of the words, from the first row to the last."""
    return {f"row {n}": marker(n).encode() for n in range(0, rows, max(1, rows // 12))}
