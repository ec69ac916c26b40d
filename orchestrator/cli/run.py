"""`sealtune run RUNFILE`: one private fine-tune, from the check of the data to the signed report."""
from __future__ import annotations

from pathlib import Path

import typer

from .options import JSON, ON_INTERRUPT, UNDERSTAND, YES


def run(
    file: Path = typer.Argument(..., metavar="RUNFILE", help="The run file (YAML)."),
    yes: bool = YES, understand: bool = UNDERSTAND, on_interrupt: str = ON_INTERRUPT, json: bool = JSON,
) -> None:
    """Fine-tune as the run file says.

    On a rented node or your own server; everything is shown and confirmed before money moves.
    """
    from .. import wiring
    from ..results.output import check_output
    from ..settings.read import load_run
    from .desk import Desk
    from .person import Terminal
    from .play import play

    desk, run_file = Desk.open(yes), load_run(file)
    check_output(run_file.output)
    desk.must_be_accepted(run_file)
    lab = desk.is_lab(run_file)
    person = Terminal(yes, understand or desk.settings.policy.operator_can_read, on_interrupt, exempt=lab)
    begun = wiring.new_run(desk.settings, run_file, "lab" if lab else run_file.market)
    raise typer.Exit(play(desk, begun, person, json, new=True))
