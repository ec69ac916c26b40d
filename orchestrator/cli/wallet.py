"""`sealtune wallet new | import | show | fund | sweep`: the account that pays for rentals."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .options import JSON, LAB, PASSWORD_FILE, YES

if TYPE_CHECKING:
    from ..chain.wallet import Wallet
    from .desk import Desk

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="The account that pays for rentals.")
KEYSTORE = typer.Argument(None, metavar="[KEYSTORE]", help="Another tool's file; without it a private key is asked for.")
KEYRING = typer.Option(False, "--keyring", help="Keep the password in the system's keyring.")
BUDGET = typer.Option("", "--budget", metavar="AMOUNT", help='What a run may cost at most, like "8.00 USDC".')
TO = typer.Option("", "--to", metavar="ADDRESS", help="Where all of it goes; home, without it, for a browser's wallet.")
GIVE = typer.Option(False, "--give", help="In the lab: put the play money there.")


@app.command("new")
def new(password_file: Path | None = PASSWORD_FILE, keyring: bool = KEYRING, json: bool = JSON) -> None:
    """Make a new account in a keystore file."""
    from ..chain import wallet
    from .desk import Desk
    from .password import choose

    desk = Desk.open()
    path = _must_be_free(desk)
    password = choose(desk.password_file(password_file))
    _made(desk, wallet.new(path, password), path, password, keyring, json)


@app.command("import")
def import_(keystore: Path | None = KEYSTORE, password_file: Path | None = PASSWORD_FILE, keyring: bool = KEYRING,
            json: bool = JSON) -> None:
    """Take over an account: a keystore file, or a private key typed unseen."""
    from ..chain import wallet
    from .desk import Desk
    from .password import choose, hidden, unlock

    desk = Desk.open()
    path = _must_be_free(desk)
    if keystore:
        password = unlock(keystore, desk.password_file(password_file))
        made = wallet.take_over(keystore, path, password)
    else:
        key = wallet.typed_key(hidden("private key (it is not shown): "))
        password = choose(desk.password_file(password_file))
        made = wallet.save(path, key, password)
    _made(desk, made, path, password, keyring, json)


@app.command("show")
def show(lab: bool = LAB, json: bool = JSON) -> None:
    """Show the account and its money.

    USDC, gas, deposits locked in open rentals, credit in the escrow.
    """
    from .desk import Desk
    from .funds import show_funds, tree
    from .render import show_json

    desk = Desk.open()
    found = desk.purse(desk.money(lab)).funds()
    if json:
        show_json(tree(found))
    else:
        show_funds(found)


@app.command("fund")
def fund(budget: str = BUDGET, lab: bool = LAB, give: bool = GIVE, json: bool = JSON) -> None:
    """Say in plain words what to send where before a run."""
    from ..chain import funding
    from .desk import Desk
    from .funds import need_tree, parse_budget
    from .render import show_json

    desk = Desk.open()
    place = desk.money(lab)
    purse = desk.purse(place)
    need = funding.need(parse_budget(budget), purse.gas_wanted())
    if give:
        desk.give(place, purse.address, funding.missing(need, purse.funds()).usdc.units, purse.payer)
    found = purse.funds()
    if json:
        show_json(need_tree(need, funding.missing(need, found), found))
    else:
        typer.echo("\n".join(funding.advice(need, found)))


@app.command("sweep")
def sweep(to: str = TO, lab: bool = LAB,
          password_file: Path | None = PASSWORD_FILE, yes: bool = YES, json: bool = JSON) -> None:
    """Send everything home: first USDC, then what is left for gas."""
    from ..errors import Refused
    from .desk import Desk, ask, note
    from .funds import show_swept, swept_tree
    from .render import show_json

    desk = Desk.open(yes)
    place = desk.money(lab)
    looked = desk.purse(place)
    target, found = looked.target(to), looked.funds()
    if found.payer == found.address:
        note(f"from {found.address} on {found.network.name}: {found.usdc} and {found.coin} less gas")
    else:
        note(f"from {found.payer} on {found.network.name}: {found.coin} less gas; and {found.set_aside} that is set aside")
    note(f"to   {target}")
    if not yes and ask("send it? [y/N] ").lower() not in ("y", "yes"):
        raise Refused("nothing was sent", hint="sealtune wallet show")
    swept = desk.purse(place, key=True, file=password_file).sweep(target)
    if json:
        show_json(swept_tree(swept))
    else:
        show_swept(swept)


def _must_be_free(desk: Desk) -> Path:
    """Where the keystore goes: nothing is asked when there is one."""
    from ..errors import BadInput

    if desk.settings.open and desk.settings.open.account:
        raise BadInput(f"the wallet of settings.yaml is {desk.settings.open.account}, in your browser",
                       hint="a keystore instead: take `wallet:` and `account:` out of `open:`")
    path = desk.keystore()
    if path.exists():
        raise BadInput(f"{path} exists already", hint="sealtune wallet show; another file: `keystore:` in settings.yaml")
    return path


def _made(desk: Desk, made: Wallet, path: Path, password: str, keyring: bool, json: bool) -> None:
    from ..vault import passwords
    from .desk import note
    from .render import show_json

    if keyring:
        passwords.keep_in_keyring(made.address, password)
    if json:
        show_json({"address": made.address, "keystore": str(path), "keyring": keyring})
    else:
        typer.echo(f"address   {made.address}\nkeystore  {path}")
    note("back up the keystore file and its password: nobody else has them, and without both the money is gone")
    note("next: sealtune wallet fund" if desk.settings.open else "next: a market, as `open:` in settings.yaml; see README")
