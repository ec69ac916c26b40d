"""`sealtune init`: a commented run file after a short dialogue, from the data and the plan."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .options import JSON, YES

if TYPE_CHECKING:
    from ..dataset.check import Checked
    from ..settings.values import RunFile
    from .desk import Desk
    from .dialogue import Dialogue
    from .drafting import Chosen, Start

MARKETS = {"open": "a rented machine, paid from your wallet", "lab": "play money, all on this machine",
           "ssh": "your own GPU server"}


def init(
    file: Path = typer.Argument(None, metavar="[RUNFILE]", help="Where to; without it, beside the dataset and by its name."),
    dataset: str = typer.Option("", "--dataset", metavar="FILE", help="The rows to train on."),
    market: str = typer.Option("", "--market", help="open, lab or ssh."),
    model: str = typer.Option("", "--model", help="A hub id."),
    method: str = typer.Option("", "--method", help="lora or qlora; without it, by what fits a card of 24 GB."),
    host: str = typer.Option("", "--host", metavar="[USER@]HOST", help="Your own server, with --market ssh."),
    budget: str = typer.Option("", "--budget", metavar="AMOUNT", help='Deposits never pass this, like "8.00 USDC".'),
    schema: bool = typer.Option(False, "--schema", help="Print the JSON Schema of run files, for editors, and stop."),
    yes: bool = YES, json: bool = JSON,
) -> None:
    """Write a run file after a few questions.

    What is not asked comes from the data and from the plan. A file that is there is not overwritten.
    """
    from ..settings.draft import write
    from ..settings.schema import run_schema
    from .desk import Desk
    from .dialogue import Dialogue
    from .drafting import Chosen, draft
    from .render import show_json

    if schema:
        show_json(run_schema())
        return
    desk, dialogue = Desk.open(yes), Dialogue(yes)
    path, found = _begin(dialogue, file, dataset)
    chosen, begin = _rest(desk, dialogue, found, Chosen(_from(path, found.source.path), market, model, method, host, budget))
    run_file = write(path, draft(path, chosen, begin, found))
    _tell(desk, path, run_file, found, begin, json)


def _begin(dialogue: Dialogue, file: Path | None, dataset: str) -> tuple[Path, Checked]:
    """Where the run file goes, and the data, read. A file that exists is told before anything is asked."""
    from ..errors import BadInput
    from ..settings.draft import exists
    from .data import RUN_FILES
    from .desk import note
    from .known import only_dataset, read

    if file and file.suffix.lower() not in RUN_FILES:
        raise BadInput(f"a run file is called like visits.yaml, not {file.name!a}", hint=f"sealtune init --dataset {file}")
    if file and file.exists():
        raise exists(file)
    default = dataset or only_dataset(file.parent if file else Path())
    named = dataset or dialogue.text("which file holds your rows?", default, _named)
    source = Path(_named(named)).expanduser()
    path = file or source.with_name(f"{source.name.partition('.')[0]}.yaml")
    if path.exists():
        raise exists(path)
    found = read(source)
    note(f"{source.name}: {found.rows} rows of {found.structure.format}, {found.held_out} of them held out")
    return path, found


def _named(said: str) -> str:
    from ..errors import BadInput

    if not said:
        raise BadInput("no dataset is named", hint="sealtune init --dataset FILE")
    return said


def _rest(desk: Desk, dialogue: Dialogue, found: Checked, said: Chosen) -> tuple[Chosen, Start]:
    """Market, model, server or budget: what the command line leaves open is asked."""
    from dataclasses import replace
    from functools import partial

    from ..settings.draft import must_do
    from . import drafting
    from .dialogue import chosen as one_of

    for name, text in (("model", said.model), ("method", said.method), ("host", said.host), ("budget", said.budget)):
        if text:
            must_do(name, text)
    likely = "open" if desk.settings.open else "lab"
    market = one_of(said.market, MARKETS) if said.market else dialogue.choice("where will it run?", MARKETS, likely)
    model = said.model or dialogue.text("which model?", drafting.likely_model(found, market), partial(must_do, "model"))
    host = said.host or (dialogue.text("which server?", "", partial(must_do, "host")) if market == "ssh" else "")
    begin = drafting.start(desk.settings, found, model, said.method)
    known = replace(said, market=market, model=model, host=host)
    sum_ = drafting.budget(desk.settings, known, begin)
    if not said.budget and sum_:
        sum_ = dialogue.text("how much may it cost at most?", sum_, partial(must_do, "budget"))
    return replace(known, budget=sum_), begin


def _from(path: Path, source: Path) -> str:
    """The dataset as the run file names it: from its own folder where it lies in there."""
    here, there = path.absolute().parent, source.absolute()
    return str(there.relative_to(here)) if there.is_relative_to(here) else str(there)


def _tell(desk: Desk, path: Path, run_file: RunFile, found: Checked, begin: Start, json: bool) -> None:
    from ..settings.schema import NAME
    from .desk import note
    from .drafting import notes, outlook
    from .render import show_json

    said = notes(desk.settings, run_file.market, found, begin)
    if json:
        show_json({
            "file": str(path), "model": run_file.model, "method": run_file.method, "market": run_file.market,
            "budget": str(run_file.budget.units) if run_file.budget else None, "training": dict(run_file.knobs),
            "data": {"rows": found.rows, "train": found.rows - found.held_out, "held_out": found.held_out,
                     "format": found.structure.format},
            "plan": outlook(begin), "notes": list(said), "error": None})
    else:
        typer.echo(f"wrote {path}")
    for line in said:
        note(f"note: {line}")
    note(f"next: sealtune plan {path}; for your editor: sealtune init --schema > {NAME}")
