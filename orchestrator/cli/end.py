"""`sealtune end RENTAL | --leaked`: give back what a run holds, wipe what can be reached, bring the money home."""
from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from .options import JSON, YES

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..domain.names import RunId
    from ..sweep import Leftover, Swept
    from .desk import Desk

UNKNOWN_RUNS = typer.Option(False, "--unknown-runs", help="With --yes: also end leases whose run is not known here.")


def end(
    rental: str = typer.Argument("", help="A run or rental, as `sealtune rentals` shows it."),
    leaked: bool = typer.Option(False, "--leaked", help="End every lease that nobody watches any more."),
    yes: bool = YES, unknown_runs: bool = UNKNOWN_RUNS, json: bool = JSON,
) -> None:
    """End a rental, or every leaked one.

    Wipes what can be reached, ends the lease, settles the deposit and signs the record. All leases of the run are
    ended and its keys destroyed: it cannot be resumed afterwards.
    """
    from functools import partial

    from ..errors import BadInput
    from ..sweep import end_leaked
    from .desk import Desk
    from .leftovers import house_for, house_of, leftovers
    from .render import show_json

    if leaked == bool(rental):
        raise BadInput("name one rental, or say --leaked", hint="sealtune rentals")
    desk = Desk.open(yes)
    if leaked:
        swept = end_leaked(leftovers(desk), partial(house_of, desk), partial(house_for, desk),
                           partial(adopt, yes, unknown_runs))
    else:
        swept = [end_one(desk, rental, yes)]
    if json:
        show_json({"ended": [{"run": s.run, "error": str(s.problem) if s.problem else None} for s in swept]})
    raise typer.Exit(tell(swept, json))


def end_one(desk: Desk, rental: str, yes: bool) -> Swept:
    """A run of this laptop by its journal; otherwise a lease that a market shows under this name. NoSuchRun."""
    from functools import partial

    from .. import wiring
    from ..domain.names import RunId
    from ..errors import NoSuchRun, Refused
    from ..sweep import end_found, end_run
    from .leftovers import house_for, house_of, leftovers

    run = RunId(rental.split("/")[0])
    if run in wiring.journals(desk.settings).runs() and wiring.is_own(desk.settings, run):
        if not (yes or may_go(desk, run)):
            raise Refused(f"{run} was left alone", hint=f"sealtune resume {run}")
        return end_run(run, partial(house_of, desk))
    for left in leftovers(desk):
        if left.run == run and left.found:
            if not adopt(yes, yes, left):
                raise Refused(f"{run} was left alone")
            return end_found(left, partial(house_for, desk))
    raise NoSuchRun(f"no run and no open lease {rental!r}", hint="sealtune rentals")


def may_go(desk: Desk, run: RunId) -> bool:
    """A run that is healthy, or may be gone on with, is asked about before its work is thrown away."""
    from .. import wiring
    from .desk import ask, note
    from .leftovers import known_here
    from .rentals import line, row

    healthy = [left for left in known_here(desk) if left.run == run and left.state in ("detached", "paused")]
    for left in healthy:
        note(line(row(left, wiring.clock().now())))
        note(f"{run} is {left.state}: ending it loses its work on the node; sealtune resume {run} goes on with it")
    return not healthy or ask("end it? [y/N] ").lower() in ("y", "yes")


def adopt(yes: bool, unknown_runs: bool, left: Leftover) -> bool:
    """A lease with our mark and no journal here may be healthy on another laptop: asked for each."""
    from .desk import ask, note

    note(f"{left.run}: unknown run, may be healthy on another laptop; ending it cannot wipe it: no key here")
    if yes:
        if not unknown_runs:
            note("  left alone; --yes --unknown-runs ends it")
        return unknown_runs
    return ask("end it? [y/N] ").lower() in ("y", "yes")


def tell(swept: Sequence[Swept], json: bool) -> int:
    """A line for each; the exit code is the gravest one."""
    from ..errors import EXIT_INCOMPLETE, gravest
    from .desk import note

    for one in swept:
        note(f"{one.run}: {one.problem if one.problem else 'ended, nothing is owed'}")
        if one.given_up:
            note(f"given up on the node: {', '.join(one.given_up)}; sealtune audit {one.run} says more")
        if one.problem and one.problem.hint:
            note(f"hint: {one.problem.hint}")
    if not swept and not json:
        note("nothing leaked")
    codes = [one.problem.exit_code if one.problem else EXIT_INCOMPLETE for one in swept if one.problem or one.given_up]
    return gravest(codes)
