"""`sealtune resume RUN`: go on where a run stands, whatever stopped it."""
from __future__ import annotations

import typer

from .options import JSON, ON_INTERRUPT, UNDERSTAND, YES


def resume(
    run: str = typer.Argument(..., help="The run's name, as `sealtune status` shows it."),
    yes: bool = YES, understand: bool = UNDERSTAND, on_interrupt: str = ON_INTERRUPT, json: bool = JSON,
) -> None:
    """Go on with a run that was stopped.

    Interrupted, crashed or left alone: it asks the world first and repeats only what was not done.
    """
    from .. import wiring
    from ..domain.names import RunId
    from .desk import Desk, note
    from .person import Terminal
    from .play import play
    from .status import is_over

    desk = Desk.open(yes)
    if is_over(wiring.journals(desk.settings).read(RunId(run))):
        note(f"{run} is over already, and nothing is owed; what came of it:")
    lab = desk.is_lab(wiring.run_file_of(desk.settings, RunId(run)))
    person = Terminal(yes, understand or desk.settings.policy.operator_can_read, on_interrupt, exempt=lab)
    raise typer.Exit(play(desk, RunId(run), person, json))
