"""`sealtune demo`: the whole journey on this machine, every part real but the GPU. Never asks."""
from __future__ import annotations

import typer

from .options import JSON


def demo(json: bool = JSON, engine: str = typer.Option("trl", hidden=True)) -> None:
    """Run the whole journey on this machine.

    A lab with its own chain, market and node, and a tiny model that really learns. Never asks.
    """
    from .. import wiring
    from ..lab.demo import write_run_file
    from ..settings.read import load_run
    from .desk import Desk, note
    from .person import Terminal
    from .play import play

    desk = Desk.open(yes=True)
    note("a lab on this machine: own chain with play money, own provider, own node; its GPU is simulated")
    run_file = load_run(write_run_file(desk.settings.state / "demo", engine))
    person = Terminal(yes=True, understood=True, on_interrupt="stop", exempt=True)
    code = play(desk, wiring.new_run(desk.settings, run_file, "lab"), person, json, new=True)
    note("the lab stays up; to stop it: sealtune lab down")
    raise typer.Exit(code)
