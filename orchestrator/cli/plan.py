"""`sealtune plan`: does it fit, how long, what does it cost, here and elsewhere; before anything is rented."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .options import JSON

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..domain.lease import Offer
    from ..settings.values import RunFile
    from .desk import Desk

MODEL = typer.Option("", "--model", help="A hub id, instead of a run file's.")
CONFIG = typer.Option(None, "--config", metavar="FILE", help="The model's config.json; then no hub is asked.")
METHOD = typer.Option("", "--method", help="lora, qlora or full, instead of the run file's.")
BATCH = typer.Option(0, "--batch", min=0, max=4096, help="Rows at a time, instead of the run file's.")
LENGTH = typer.Option(0, "--length", min=0, max=1_048_576, help="Tokens of a row at most, instead of the run file's.")
ROWS = typer.Option(1000, "--rows", min=2, help="How many rows, where there is no run file.")
SIZE = typer.Option(1400, "--row-bytes", min=1, help="Bytes of a row on average, where there is no run file.")
CARD = typer.Option("", "--card", help="Judge this card, by name or by GiB, and say what would fit it.")
OFFERS = typer.Option(None, "--offers", metavar="FILE", help="Offers that were saved; then no market is asked.")
SAVE = typer.Option(None, "--save", metavar="FILE", help="Save the offers that the market makes now.")


def plan(
    file: Path = typer.Argument(None, metavar="[RUNFILE]", help="The run file (YAML)."), model: str = MODEL,
    config: Path = CONFIG, method: str = METHOD, batch: int = BATCH, length: int = LENGTH, rows: int = ROWS,
    row_bytes: int = SIZE, card: str = CARD, offers: Path = OFFERS, save: Path = SAVE, json: bool = JSON,
) -> None:
    """Say what a run takes and costs.

    Memory on the GPU, hours and money, on offer and elsewhere. Rents nothing, asks for no password.
    """
    from ..settings.read import load_run
    from .asked import planned_run, wanted
    from .desk import Desk
    from .offersfile import read_offers, save_offers
    from .planned import shown, told
    from .render import show_json

    desk, run_file = Desk.open(), load_run(file) if file else None
    asked = wanted(model, config, method, batch, length, run_file)
    run = planned_run(desk.settings, run_file, asked, rows, row_bytes)
    found = read_offers(offers) if offers else market_offers(desk, run_file)
    if save:
        save_offers(save, found)
    tree = told(run, asked.model, found, run_file, desk.settings.prices, card)
    if json:
        show_json(tree)
        return
    for line in shown(tree):
        typer.echo(line)


def market_offers(desk: Desk, run_file: RunFile | None) -> Sequence[Offer]:
    """What is offered now; nothing on one's own server, or by a lab that is stopped. A market that is silent is said."""
    from .. import wiring
    from ..domain.lease import Wish
    from ..errors import SealtuneError
    from ..lab.up import place, running
    from .desk import note

    if run_file and run_file.market == "ssh":
        return ()
    at = wiring.open_place(desk.settings) if run_file is None or run_file.market == "open" else None
    if at is None and (lab := running(desk.settings.state)):
        at = place(lab)
    if at is None:
        note("no market is asked: none is set up, and the lab is stopped")
        return ()
    try:
        return wiring.offers(desk.settings, at, run_file.wish if run_file else Wish())
    except SealtuneError as silent:
        note(f"no offers: {silent}")
        return ()
