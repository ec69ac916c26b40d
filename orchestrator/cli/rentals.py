"""`sealtune rentals`: every lease of ours that is open, on this machine or not, and what it costs per hour."""
from __future__ import annotations

import time
from typing import TYPE_CHECKING, cast

import typer

from ..domain.names import Instant, when
from .options import JSON

if TYPE_CHECKING:
    from ..sweep import Leftover
    from .shapes.runs import Held, OpenLease


def rentals(json: bool = JSON) -> None:
    """List open rentals and their cost.

    in use, detached, paused, leaked, or unknown to this machine. Looks only: a stopped lab stays stopped.
    """
    from ..errors import Unreachable
    from .desk import Desk
    from .leftovers import leftovers
    from .render import error_of, show_json

    found, problem, now = [], None, int(time.time())
    try:
        for left in leftovers(Desk.open(), start=False):
            found.append(row(left, now))
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


def line(one: OpenLease) -> str:
    """One lease in words; on the person's own server what is still on it, and no word of money."""
    head = f"{one['rental']:32} {one['state']:9}"
    if one["market"] == "ssh":
        there = [what for what in one["owed"] if what not in ("lease", "deposit")]
        return f"{head} {'your own server':20} to be wiped: {', '.join(there) or 'nothing'}"
    if one["problem"]:
        return f"{head} {one['problem']}"
    if "budget" in one["owed"] and one["deposit"]:
        return f"{head} {usdc(one['deposit'])} set aside for the run, less what its rentals took; comes home with its end"
    if one["since"] is None or one["cost_so_far"] is None:
        return f"{head} asked for; whether it was made is not known yet"
    until = f"until {when(Instant(one['until']))}" if one["until"] else "until it is ended"
    cost = f"{usdc(one['cost_so_far'])} so far" + (f" of {usdc(one['deposit'])}" if one["deposit"] else "")
    owes = ", ".join(one["owed"]) or "its deposit"
    return f"{head} {one['rate']:20} since {when(Instant(one['since']))}, {until}; {cost}; owes {owes}"


def usdc(units: str) -> str:
    from ..domain.money import USDC, Money

    return str(Money(int(units), USDC))


def row(left: Leftover, now: int) -> OpenLease:
    """Every key, always. Instants are Unix seconds, amounts strings in base units; null where it is not known.
    `deposit` is what the lease is paid ahead for, or what is set aside; `cost_so_far` what its rate makes of the time until
    now."""
    lease, view = left.lease, left.view
    until = view.funded_until if view else None
    seconds = min(now, until or now) - lease.opened_at if lease else 0
    return {"rental": f"{left.run}/{left.scope}", "run": left.run, "state": cast("Held", left.state),
            "market": lease.market if lease else None, "lease": lease.lease_id if lease else None,
            "node": f"{view.access.host}:{view.access.port}" if view and view.access else None,
            "since": lease.opened_at if lease else None, "until": until,
            "rate": str(lease.rate) if lease else "unknown", "per_hour": str(lease.rate.per_hour.units) if lease else None,
            "deposit": str(left.deposit.units) if left.deposit else None,
            "cost_so_far": str(lease.rate.accrued(seconds).units) if lease else None,
            "owed": sorted({o.what for o in left.owed}), "problem": left.problem or None}
