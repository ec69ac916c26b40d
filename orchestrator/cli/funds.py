"""A wallet's money as text and as JSON. Amounts in JSON are strings in base units."""
from __future__ import annotations

from ..chain.funding import GOOD_FOR_A_RUN, Need
from ..chain.funds import Funds, Swept
from ..domain.document import Json
from ..domain.money import USDC, Money
from ..errors import BadInput


def tree(found: Funds) -> dict[str, Json]:
    return {
        "address": found.address, "payer": found.payer, "network": found.network.name, "chain_id": found.network.chain_id,
        "usdc": str(found.usdc.units), "pol": str(found.coin.units), "usdc_e": str(found.bridged.units),
        "locked": _units(found.locked), "credit": _units(found.credit), "set_aside": str(found.set_aside.units),
        "open_rentals": None if found.rentals is None else len(found.rentals),
        "paused": found.paused, "blacklisted": found.blacklisted, "why": found.why or None,
    }


def show_funds(found: Funds) -> None:
    print(f"address   {found.address}")
    print(f"network   {found.network.name} (chain id {found.network.chain_id})")
    if found.payer == found.address:
        print(f"has       {found.usdc}, {found.coin} for gas")
    else:
        print(f"has       {found.usdc}; its key is in your browser")
        print(f"gas       {found.coin} in this laptop's second key {found.payer}")
    if found.rentals is None or found.credit is None:
        print(f"escrow    not checked: {found.why}")
    else:
        print(f"locked    {found.locked} in {len(found.rentals)} open rentals: sealtune escrow open")
        if found.credit.units:
            print(f"credit    {found.credit} waits in the escrow, and comes home with the next settlement or sweep")
    if found.set_aside.units:
        print(f"set aside {found.set_aside} for a run; what it does not use comes home with its end, or wallet sweep")
    if found.bridged.units:
        print(f"note      {found.bridged} of USDC.e are here, which the escrow does not take")
    if found.paused:
        print("note      USDC is paused by its issuer: nobody can move any now")
    if found.blacklisted:
        print("note      the issuer of USDC has blocked this account")


def parse_budget(text: str) -> Money:
    """A run's budget; without one what is good for a run of some hours."""
    try:
        return Money.parse(text, USDC) if text else GOOD_FOR_A_RUN
    except ValueError as problem:
        raise BadInput(f"--budget: {problem}", hint='like "8.00 USDC"') from problem


def need_tree(need: Need, lacking: Need, found: Funds) -> dict[str, Json]:
    """What a run needs, what is there, what to send."""
    return {**tree(found), "token": found.network.usdc or None,
            "need": {"usdc": str(need.usdc.units), "pol": str(need.coin.units)},
            "send": {"usdc": str(lacking.usdc.units), "pol": str(lacking.coin.units)}}


def swept_tree(swept: Swept) -> dict[str, Json]:
    return {"to": swept.to, "usdc": str(swept.usdc.units), "pol": str(swept.coin.units), "credit": str(swept.credit.units),
            "left_pol": str(swept.left.units), "transactions": list(swept.transactions), "finished_earlier": swept.earlier,
            "final": swept.final}


def show_swept(swept: Swept) -> None:
    if swept.earlier:
        print("a sweep that was begun before was seen through first")
    if not (swept.usdc.units or swept.coin.units):
        print("nothing was left to send")
    else:
        print(f"sent      {swept.usdc} and {swept.coin} to {swept.to}")
    print(f"left      {swept.left}, which is not worth its gas")
    if not swept.final:
        print("included, not final yet: the same command again in a minute says when it is, and sends nothing twice")


def _units(money: Money | None) -> str | None:
    return None if money is None else str(money.units)
