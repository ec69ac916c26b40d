"""Rentals as the contract shows them: found by id, prefix or run, and shown as text and as JSON."""
from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from .. import steps, wiring
from ..domain.document import Json, decode
from ..domain.escrow import Rental
from ..domain.event import Kind
from ..domain.lease import Lease
from ..domain.money import USDC, Money
from ..errors import BadInput, NoSuchRun, Refused
from .desk import ask, note

if TYPE_CHECKING:
    from ..chain.closing import Closing
    from ..chain.funds import Purse
    from .desk import Desk


def find(desk: Desk, purse: Purse, name: str) -> Rental:
    """NoSuchRun where the chain, or this machine, knows nothing of that name."""
    if re.fullmatch(r"0x[0-9a-fA-F]{64}", name):
        rental = purse.escrow.view(name.lower())
    elif name.startswith("0x"):
        fitting = [r for r in purse.escrow.open_rentals() if r.id.startswith(name.lower())]
        if len(fitting) > 1:
            raise BadInput(f"{len(fitting)} open rentals begin with {name[:70]}", hint="sealtune escrow open")
        if not fitting:
            raise NoSuchRun(f"no open rental begins with {name[:70]!r}", hint="sealtune escrow open")
        return fitting[0]
    else:
        leases = [id for run, scope, id in known(desk) if name in (run, f"{run}/{scope}")]
        if not leases:
            raise NoSuchRun(f"no run {name[:80]!r} here has a rental", hint="sealtune escrow open")
        rental = purse.escrow.view(leases[-1])
    if rental.status == "none":
        raise NoSuchRun(f"the escrow knows no rental {rental.id}", hint="sealtune escrow open")
    return rental


def chosen(desk: Desk, purse: Purse, names: Sequence[str], all_: bool, signed: bool) -> Sequence[Rental]:
    """Of the open ones: those named, or all that no run here knows. A run's own rental is left to `sealtune end`.
    `signed`: only what can be ended by a signature, which is what has begun."""
    if all_ == bool(names):
        raise BadInput("name rentals, or say --all", hint="sealtune escrow open")
    ours = {id: run for run, _, id in known(desk)}
    if all_:
        return _begun([r for r in purse.escrow.open_rentals() if r.id not in ours], signed)
    found = [find(desk, purse, name) for name in names]
    for one in found:
        if one.id in ours:
            raise BadInput(f"run {ours[one.id]} holds {one.id}: it is wiped before it is ended",
                           hint=f"sealtune end {ours[one.id]}")
    return _begun([one for one in {r.id: r for r in found}.values() if one.status != "closed"], signed)


def must_agree(found: Sequence[Rental], yes: bool) -> None:
    """Shows what would be ended; Refused unless the person says so."""
    show_open(found, err=True)
    if found and not yes and ask(f"end these {len(found)}, unwiped? [y/N] ").lower() not in ("y", "yes"):
        raise Refused("nothing was ended", hint="sealtune escrow open")


def _begun(found: Sequence[Rental], signed: bool) -> Sequence[Rental]:
    if not signed:
        return found
    for one in found:
        if one.status not in ("active", "expired"):
            note(f"{one.id} has not begun: only its own key takes it back, and after "
                 f"{_time(one.start_by)} anyone does: sealtune escrow end {one.id}")
    return [one for one in found if one.status in ("active", "expired")]


def known(desk: Desk) -> Iterator[tuple[str, str, str]]:
    """(run, scope, rental id) of every lease in this machine's journals."""
    book = wiring.journals(desk.settings)
    for run in book.runs():
        for e in book.read(run):
            if e.deed.step == steps.OPEN.name and e.kind is Kind.DONE:
                yield run, e.deed.scope, str(decode(Lease, e.public, e.private).lease_id)


# ---- shown -------------------------------------------------------------------------------------------------


def tree(one: Rental) -> dict[str, Json]:
    """Amounts in base units as strings, times in seconds of the chain."""
    return {"id": one.id, "status": one.status, "renter": one.renter, "provider": one.provider,
            "per_hour": str(one.price_per_hour), "deposit": str(one.deposit), "locked": str(one.locked),
            "accrued": str(one.accrued), "can_still_cost": str(one.can_still_cost), "seconds": one.seconds,
            "started_at": one.started_at, "ends_at": one.ends_at, "inspect_until": one.inspect_until,
            "outcome": one.outcome or None, "closed_by": one.closed_by or None, "paid": str(one.paid), "fee": str(one.fee),
            "refunded": str(one.refunded), "report_digest": one.report_digest}


def show_rental(one: Rental) -> None:
    print(f"rental    {one.id}")
    print(f"status    {one.status}{f': {one.outcome} by {one.closed_by}' if one.status == 'closed' else ''}")
    print(f"provider  {one.provider}")
    print(f"price     {_usdc(one.price_per_hour)} per hour, {one.seconds} s are paid ahead")
    print(f"deposit   {_usdc(one.deposit)}, of which {_usdc(one.locked)} is locked now")
    if one.status == "closed":
        print(f"came of it: paid {_usdc(one.paid)} + fee {_usdc(one.fee)} + refunded {_usdc(one.refunded)}")
        return
    print(f"cost      {_usdc(one.accrued)} so far, {_usdc(one.can_still_cost)} more if nobody ends it")
    if one.ends_at:
        print(f"paid until {_time(one.ends_at)}; free to leave until {_time(one.inspect_until)}")
    else:
        print(f"the provider must begin by {_time(one.start_by)}")


def show_open(found: Sequence[Rental], err: bool = False) -> None:
    import sys

    out = sys.stderr if err else sys.stdout
    for one in found:
        print(f"{one.id}  {one.status:8} locked {_usdc(one.locked)}, cost {_usdc(one.accrued)} so far, "
              f"{_usdc(one.can_still_cost)} more if nobody ends it", file=out)
    total, more = sum(one.locked for one in found), sum(one.can_still_cost for one in found)
    print(f"{len(found)} open rentals, {_usdc(total)} locked, {_usdc(more)} can still be lost" if found
          else "no open rentals", file=out)


def closing_tree(closings: Sequence[Closing]) -> dict[str, Json]:
    return {"ended": [{**tree(one.rental), "error": str(one.problem) if one.problem else None} for one in closings]}


def show_closing(closings: Sequence[Closing]) -> None:
    for one in closings:
        rental = one.rental
        came = f"open: {one.problem}" if one.problem else f"{rental.outcome}, refunded {_usdc(rental.refunded)}"
        print(f"{rental.id}  {came}")
    closed = [one for one in closings if not one.problem]
    print(f"{len(closed)} of {len(closings)} ended; not wiped by you: the node's keeper has that duty")


def _usdc(units: int) -> str:
    return str(Money(units, USDC))


def _time(seconds: int) -> str:
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")
