"""What a person without crypto habits has to buy, and where to send it: plain words, and amounts worked out.

Pure: figures in, lines out.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..domain.money import USDC, Money
from .funds import Funds
from .networks import AMOY, LAB, Network

GOOD_FOR_A_RUN = Money(8 * 10**6, USDC)  # a fine-tune of an 8B model for a few hours, with room


@dataclass(frozen=True, slots=True)
class Need:
    """What a run wants in the wallet: the token for the deposit, the coin for gas."""

    usdc: Money
    coin: Money


def need(budget: Money, gas: Money) -> Need:
    """Rounded up to what one can buy: cents, and hundredths of the coin."""
    return Need(_up(budget, 10**4), _up(gas, 10**16))


def missing(wanted: Need, funds: Funds) -> Need:
    """What is not there yet."""
    return need(wanted.usdc - funds.usdc, wanted.coin - funds.coin)


def advice(wanted: Need, funds: Funds) -> list[str]:
    """The page that `sealtune wallet fund` prints."""
    lacking = missing(wanted, funds)
    lines = [f"wallet    {funds.address}", f"network   {_name(funds.network)}",
             f"has       {funds.usdc}, {funds.coin}",
             f"a run     {wanted.usdc} at most for the deposit, {wanted.coin} for gas", ""]
    if funds.payer != funds.address:
        lines[1:1] = [f"gas       is paid by this laptop's second key {funds.payer}"]
    lines += _warnings(funds)
    if not lacking.usdc.units and not lacking.coin.units:
        return [*lines, "this is enough: nothing needs to be sent"]
    if lacking.usdc.units:
        lines += [f"to send to {funds.address}:",
                  f"  {lacking.usdc}   the dollar token, which pays the deposit; what is not used comes back"]
    if lacking.coin.units:
        lines += [f"to send to {funds.payer}:",
                  f"  {lacking.coin}   the network's own coin (POL, formerly MATIC), which pays the network's fees"]
    return [*lines, "", *_how(funds.network, funds.payer != funds.address), "", "look again with: sealtune wallet show"]


def _warnings(funds: Funds) -> list[str]:
    lines = list[str]()
    if funds.bridged.units:
        lines.append(f"note: {funds.bridged} of what is here are USDC.e, another token that the escrow does not take; "
                     "swap it for USDC in your wallet app")
    if funds.paused:
        lines.append("note: USDC is paused by its issuer: nobody can move any now; wait with sending")
    if funds.blacklisted:
        lines.append("note: the issuer of USDC has blocked this account: send nothing here, make another wallet")
    return lines


def _how(network: Network, in_browser: bool) -> list[str]:
    if network == LAB:
        return ["this is play money on your own machine: sealtune wallet fund --give puts it there"]
    if network == AMOY:
        return [
            "on the test network both are free of charge and worth nothing:",
            "  1. open a faucet for Polygon Amoy (Circle's gives USDC, Polygon's gives POL)",
            "  2. choose Polygon Amoy, paste the address that stands above it, ask for the token",
        ]
    return [
        "if you have none yet, the shortest way is MetaMask:",
        "  1. install MetaMask from metamask.io, make an account, write its recovery phrase on paper",
        f"  2. in its list of networks choose {network.name} (chain id {network.chain_id}, currency POL)",
        f"  3. buy USDC and POL there, or withdraw both from an exchange: choose the network {network.name}, the token USDC",
        f"     (not USDC.e, not Ethereum); the right token is {network.usdc}",
        "  4. in MetaMask press Send, paste the address that stands above the amount, send a small amount first and look "
        "whether it arrives",
        "",
        "the second key needs no more than that: what is left of it comes home when a run is over" if in_browser else
        "this wallet is for rentals only: keep no more in it than a run needs; sealtune wallet sweep brings the rest back",
    ]


def _name(network: Network) -> str:
    return f"{network.name} (chain id {network.chain_id})"


def _up(money: Money, step: int) -> Money:
    return Money(-(-max(0, money.units) // step) * step, money.currency)
