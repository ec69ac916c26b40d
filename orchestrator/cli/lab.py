"""`sealtune lab up | down | status`: the chain, provider, node and model hub on this machine."""
from __future__ import annotations

from typing import TYPE_CHECKING

import typer

from .options import JSON, YES

if TYPE_CHECKING:
    from .desk import Desk

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The lab on this machine.")


@app.command("up")
def up(json: bool = JSON) -> None:
    """Start the lab; a running one is left as it is."""
    from ..lab import up as lab
    from .desk import Desk, note
    from .render import show_json

    facts = lab.up(Desk.open().settings.state, note)
    if json:
        show_json(lab.public(facts))
    else:
        typer.echo(lab.describe(facts))


@app.command("down")
def down(yes: bool = YES, json: bool = JSON) -> None:
    """Stop the lab and everything in it; its chain and its public files stay."""
    from ..errors import Refused
    from ..lab import up as lab
    from .desk import Desk
    from .render import show_json

    desk = Desk.open()
    if not (yes or may_stop(desk)):
        raise Refused("the lab was left as it is", hint="sealtune rentals")
    was = lab.down(desk.settings.state)
    if json:
        show_json({"stopped": was})
    else:
        typer.echo("stopped" if was else "no lab was running")


def may_stop(desk: Desk) -> bool:
    """A lease that is open in the lab loses its node, with the work on it: asked about."""
    from .desk import ask, note
    from .leftovers import known_here

    in_the_lab = [left for left in known_here(desk) if left.lease and left.lease.market == "lab"]
    for left in in_the_lab:
        then = "sealtune end --leaked gives it back first" if left.state == "leaked" else "its work on the node is lost then"
        note(f"{left.run} is {left.state} in the lab, and the lab stops its node: {then}")
    return not in_the_lab or ask("stop it? [y/N] ").lower() in ("y", "yes")


@app.command("status")
def status(json: bool = JSON) -> None:
    """Say whether the lab runs, and where its parts are."""
    from ..lab import up as lab
    from .desk import Desk
    from .render import show_json

    facts = lab.running(Desk.open().settings.state)
    if json:
        show_json({"running": facts is not None, "lab": lab.public(facts) if facts else None})
    else:
        typer.echo(lab.describe(facts) if facts else "no lab is running")
