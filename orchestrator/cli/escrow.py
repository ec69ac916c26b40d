"""`sealtune escrow show RENTAL | open | end | verify | deploy`: the contract itself, from the chain alone."""
from __future__ import annotations

from pathlib import Path

import typer

from .. import wiring
from .options import JSON, LAB, PASSWORD_FILE, YES

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The escrow contract, seen from the chain alone.")
NAMES = typer.Argument(None, metavar="[RENTAL]...", help="As `escrow open` shows them.")
ALL = typer.Option(False, "--all", help="Every open rental of this wallet that no run on this machine knows.")
BROWSER = typer.Option(False, "--browser", help="The wallet in your browser signs; this machine's only pays the gas.")


@app.command("show")
def show(rental: str = typer.Argument(..., metavar="RENTAL", help="An id (0x…), the start of an open one's, or a run."),
         lab: bool = LAB, json: bool = JSON) -> None:
    """Show one rental: what is locked, what it can still cost."""
    from .deposits import find, show_rental, tree
    from .desk import Desk
    from .render import show_json

    desk = Desk.open()
    found = find(desk, desk.purse(desk.money(lab)), rental)
    if json:
        show_json(tree(found))
    else:
        show_rental(found)


@app.command("open")
def open_(lab: bool = LAB, json: bool = JSON) -> None:
    """List every open rental of the wallet. No journal is needed."""
    from .deposits import show_open, tree
    from .desk import Desk
    from .render import show_json

    desk = Desk.open()
    found = desk.purse(desk.money(lab)).escrow.open_rentals()
    if json:
        show_json({"rentals": [tree(one) for one in found], "locked": str(sum(one.locked for one in found)),
                   "can_still_cost": str(sum(one.can_still_cost for one in found))})
    else:
        show_open(found)


@app.command("end")
def end(rentals: list[str] = NAMES, all_: bool = ALL, lab: bool = LAB,
        browser: bool = BROWSER, password_file: Path | None = PASSWORD_FILE, yes: bool = YES, json: bool = JSON) -> None:
    """End rentals on the chain alone, many at a time.

    For a laptop that lost its journal. Nothing is wiped and no report is made; for a run of this machine: sealtune end.
    """
    from .browser import show_page
    from .deposits import chosen, closing_tree, must_agree, show_closing
    from .desk import Desk
    from .render import show_json

    desk = Desk.open(yes)
    place = desk.money(lab)
    theirs = wiring.browser(place, show_page) if browser else None
    found = chosen(desk, desk.purse(place, of=theirs.address if theirs else ""), rentals or [], all_, signed=browser)
    must_agree(found, yes)
    signatures = theirs.sign_ends(found) if theirs and found else None
    payer = desk.purse(place, key=True, file=password_file) if found else None
    closings = [] if payer is None else payer.close(found) if signatures is None else payer.close_signed(found, signatures)
    if json:
        show_json(closing_tree(closings))
    else:
        show_closing(closings)
    raise typer.Exit(5 if any(one.problem for one in closings) else 0)


@app.command("verify")
def verify(lab: bool = LAB, json: bool = JSON) -> None:
    """Compare the code at the escrow's address with this version's, and its books with its balance."""
    from .desk import Desk
    from .render import show_checks, show_json

    desk = Desk.open()
    place = desk.money(lab)
    purse = desk.purse(place)
    checks = purse.verify()
    if json:
        show_json({"escrow": purse.facts.escrow, "token": purse.facts.token, "chain_id": purse.facts.chain_id,
                   "checks": [{"number": c.number, "text": c.text, "word": c.word, "why": c.why} for c in checks]})
    else:
        show_checks(checks)
    raise typer.Exit(0 if all(c.held or not c.applies for c in checks) else 1)


@app.command("deploy")
def deploy(lab: bool = LAB, password_file: Path | None = PASSWORD_FILE, yes: bool = YES, json: bool = JSON) -> None:
    """Put this version's escrow on the chain.

    At the address that follows from its code and its token, whoever sends it; then every byte is compared.
    """
    from ..chain import create2
    from ..chain.networks import UNAUDITED
    from ..errors import Refused
    from .desk import Desk, ask, note
    from .render import show_json

    desk = Desk.open(yes)
    place = desk.money(lab)
    looked = desk.purse(place)
    note(f"note: {UNAUDITED}")
    note(f"on {looked.network.name}, for the token {looked.facts.token}, at {create2.address(looked.facts.token)}")
    if not yes and ask("deploy? [y/N] ").lower() not in ("y", "yes"):
        raise Refused("nothing was deployed")
    done = desk.purse(place, key=True, file=password_file).deploy()
    if json:
        show_json({"escrow": done.facts.escrow, "token": done.facts.token, "chain_id": done.facts.chain_id,
                   "transaction": done.transaction})
    else:
        typer.echo(f"escrow    {done.facts.escrow}{'' if done.transaction else ', there already'}, code compared")
