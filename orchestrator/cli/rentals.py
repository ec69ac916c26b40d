"""`sealtune rentals`: every lease of ours that is open, on this machine or not, and what it costs per hour."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from .options import JSON

if TYPE_CHECKING:
    from ..sweep import Leftover


def rentals(json: bool = JSON) -> None:
    """List open rentals and their cost.

    in use, detached, paused, leaked, or unknown to this machine.
    """
    from ..errors import Unreachable
    from .desk import Desk
    from .leftovers import leftovers
    from .render import error_of, show_json

    found, problem = [], None
    try:
        for left in leftovers(Desk.open()):
            found.append(row(left))
    except Unreachable as silent:        # said at the end, after what is known
        problem = silent
    if json:
        show_json({"rentals": found, "error": error_of(problem)})
    elif not found and not problem:
        typer.echo("no open rentals")
    for one in [] if json else found:
        typer.echo(line(one))
    if any(one["state"] in ("leaked", "unknown") for one in found):
        typer.echo("hint: sealtune end --leaked", err=True)
    if problem:
        raise problem


def line(one: dict[str, Any]) -> str:
    """One lease in words; on the person's own server what is still on it, and no word of money."""
    if one["market"] == "ssh":
        there = [what for what in one["owed"] if what not in ("lease", "deposit")]
        return f"{one['rental']:40} {one['state']:9} {'your own server':24} to be wiped: {', '.join(there) or 'nothing'}"
    return f"{one['rental']:40} {one['state']:9} {one['rate']:24} owes {', '.join(one['owed']) or 'its deposit'}"


def row(left: Leftover) -> dict[str, Any]:
    lease = left.lease
    per_hour = lease.rate.per_hour if lease else None
    return {"rental": f"{left.run}/{left.scope}", "run": left.run, "state": left.state,
            "market": lease.market if lease else None, "lease": lease.lease_id if lease else None,
            "rate": str(lease.rate) if lease else "unknown", "per_hour": str(per_hour.units) if per_hour else None,
            "owed": sorted({o.what for o in left.owed}), "problem": left.problem or None}
