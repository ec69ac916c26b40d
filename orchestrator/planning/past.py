"""How fast own runs really were, from their journals. Pure: rows in, a correction out.

A run counts when one lease did it whole and its journal holds both what was expected and how long the job took.
"""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import median

from ..domain.event import Event, Kind
from ..domain.training import Pace

NEWEST = 5                               # runs of a kind that count
LEAST, MOST = 250, 4000                  # a correction beyond these is an accident, not a pace
ADAPTER = "adapter.age"


def pace_of(rows: Sequence[Event]) -> Pace | None:
    """None where the run does not count: simulated cards compute on a CPU, and several leases share a job."""
    leases = {e.deed.scope for e in rows if e.deed.step == "open" and e.kind is Kind.DONE}
    agreed = next((e.public for e in rows if e.deed.step == "agree" and e.kind is Kind.DONE), None) or {}
    expected = agreed.get("forecast")
    if len(leases) != 1 or not expected or not expected["job_seconds"] or agreed["simulated"]:
        return None
    begun = [e for e in rows if e.deed.step == "start"]
    home = [e for e in rows if e.deed.step == "arrived" and e.deed.item == ADAPTER]
    if not begun or begun[-1].kind is not Kind.DONE or not home:
        return None
    permille = (home[-1].at - begun[-1].at) * 1000 // expected["job_seconds"]
    return Pace(expected["card"], begun[0].public["spec"]["method"], min(MOST, max(LEAST, permille)))


def correction(paces: Iterable[Pace], card: str, method: str) -> float | None:
    """The median of the newest of this card and method; None without any."""
    found = [pace.permille for pace in paces if (pace.card, pace.method) == (card, method)][-NEWEST:]
    return median(found) / 1000 if found else None
