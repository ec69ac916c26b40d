"""`sealtune lab up | down | status`: the chain, provider, node and model hub on this machine."""
from __future__ import annotations

import typer

from .options import JSON

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
def down(json: bool = JSON) -> None:
    """Stop the lab and everything in it; its chain and its public files stay."""
    from ..lab import up as lab
    from .desk import Desk
    from .render import show_json

    was = lab.down(Desk.open().settings.state)
    if json:
        show_json({"stopped": was})
    else:
        typer.echo("stopped" if was else "no lab was running")


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
