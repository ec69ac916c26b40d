"""`sealtune status [RUN]`: runs on this machine, where each stands and what it still owes."""
from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from .options import JSON

if TYPE_CHECKING:
    from ..domain.names import RunId
    from ..settings.values import Settings


def status(run: str = typer.Argument("", help="One run; all of them without it."), json: bool = JSON) -> None:
    """Show runs and what they still owe."""
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
    found = [of(settings, name) for name in runs]
    if json:
        show_json({"runs": found})
        return
    if not found:
        typer.echo("no runs yet; try: sealtune demo")
    for one in found:
        typer.echo(f"{one['run']:32} {one['state']:12} {one['step']}")
        for debt in one["owed"]:
            typer.echo(f"    owed: {debt}")


def of(settings: Settings, run: RunId) -> dict[str, Any]:
    """One run: state is running, done, open (something is owed) or stopped."""
    from .. import wiring
    from ..domain.event import Kind, owed

    book = wiring.journals(settings)
    rows = book.read(run)
    debts = [o for o in owed(rows) if o.scope != "run"]
    state = "running" if book.in_use(run) else "open" if debts else "stopped"
    if state == "stopped" and any(e.deed.step == "collect" and e.kind is Kind.DONE for e in rows):
        state = "done"
    newest = next((e for e in reversed(rows) if e.kind is not Kind.NOTED), None)
    return {"run": run, "state": state, "step": f"{newest.deed} {newest.kind.value}" if newest else "",
            "owed": [f"{o.what} of {o.scope}{'' if o.certain else ' (perhaps)'}" for o in debts],
            "home": str(wiring.home_of(settings, run))}
