"""`sealtune status [RUN]`: runs on this machine, where each stands and what it still owes."""
from __future__ import annotations

import time
from typing import TYPE_CHECKING

import typer

from .options import JSON

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..domain.event import Event
    from ..domain.names import Instant, RunId
    from ..ports import Journals
    from ..settings.values import Settings
    from .shapes.runs import RunState, State


ALL = typer.Option(False, "--all", help="Also runs that never came to rent anything.")
OUTCOME = {"intended": "begun", "done": "done", "failed": "not done", "waived": "given up"}


def status(run: str = typer.Argument("", help="One run; all of them without it."), every: bool = ALL,
           json: bool = JSON) -> None:
    """Show runs and what they still owe.

    running; done; detached: left alone on purpose; open: something is still to be given back; stopped: over before the
    adapter was home.
    """
    from .. import wiring
    from ..domain.names import RunId
    from ..errors import NoSuchRun
    from .desk import Desk
    from .render import show_json

    settings = Desk.open().settings
    book = wiring.journals(settings)
    runs = [RunId(run)] if run else list(book.runs())
    if run and run not in book.runs():
        raise NoSuchRun(f"no run {run!r} here", hint="sealtune status")
    found = [of(settings, name) for name in runs if run or every or book.in_use(name) or acquired(book, name)]
    if json:
        show_json({"runs": found})
        return
    if not found:
        typer.echo("no runs yet; try: sealtune demo")
    if len(found) < len(runs):
        typer.echo(f"{len(runs) - len(found)} more never came to rent anything: sealtune status --all", err=True)
    for one in found:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(one["at"])) if one["at"] else "-"
        typer.echo(f"{one['run']:32} {one['state']:8} {when:16}  {one['words']}")
        for debt in one["owed"]:
            typer.echo(f"    owed: {debt}")


def acquired(book: Journals, run: RunId) -> bool:
    return any(e.acquires for e in book.read(run))


def state_of(rows: Sequence[Event], in_use: bool, now: Instant) -> State:
    from ..domain.event import Kind
    from ..sweep import debts, detached_until

    if in_use:
        return "running"
    if debts(rows):
        return "detached" if now < (detached_until(rows) or 0) else "open"
    return "done" if any(e.deed.step == "collect" and e.kind is Kind.DONE for e in rows) else "stopped"


def is_over(rows: Sequence[Event]) -> bool:
    """The adapter is home, and every key of the run is gone."""
    from ..domain.event import owed

    return bool(rows) and not owed(rows) and state_of(rows, False, rows[-1].at) == "done"


def in_words(state: str, rows: Sequence[Event], newest: Event | None) -> str:
    """Where a run stands; of one that is over, what became of it and not which step happened to be its last."""
    from ..domain.names import when
    from ..sweep import detached_until
    from .screen import WORDS

    if state == "done":
        return "the adapter is home, nothing is owed"
    if state == "detached" and (until := detached_until(rows)):
        return f"left alone until {when(until)}"
    if state == "stopped":
        left = [e for e in rows if e.deed.step == "left"]
        why = left[-1].private.get("detail") or left[-1].public["reason"] if left else ""
        return f"given back, nothing is owed{f': {why}' if why else ''}" if left else "nothing was rented"
    return f"{WORDS.get(newest.deed.step, newest.deed.step)}: {OUTCOME[newest.kind.value]}" if newest else ""


def of(settings: Settings, run: RunId) -> RunState:
    """One run: state is running, done, detached, open (something is owed) or stopped."""
    from .. import wiring
    from ..domain.event import Kind
    from ..sweep import debts

    book = wiring.journals(settings)
    rows = book.read(run)
    left = debts(rows)
    state = state_of(rows, book.in_use(run), wiring.clock().now())
    newest = next((e for e in reversed(rows) if e.kind is not Kind.NOTED), None)
    return {"run": run, "state": state, "step": f"{newest.deed} {newest.kind.value}" if newest else "",
            "words": in_words(state, rows, newest), "at": rows[-1].at if rows else None,
            "owed": [f"{o.what} of {o.scope}{'' if o.certain else ' (perhaps)'}" for o in left],
            "home": str(wiring.home_of(settings, run))}
