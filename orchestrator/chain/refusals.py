"""What the contracts say no with, in words, and what that means for a run. Knows the ABI's errors; asks nothing.

A refusal of a simulated or mined call is always NothingMade: a transaction that reverts changes nothing.
"""
from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from typing import Any

from ..errors import NoFunds, NothingMade, OfferGone
from . import contracts

_STATES = ("none", "funded", "active", "closed")


class RentalExists(NothingMade):
    """The key was used: what was asked for is there already."""


class WrongState(NothingMade):
    """Somebody else moved the rental in between: look again."""


class NoBudget(NothingMade):
    """It is closed already: look again."""


class TooLate(NothingMade):
    """The time for this call is over."""


def refusal(data: str, text: str) -> NothingMade:
    """The error for a revert: `data` as 0x-hex if the node gave it, `text` what it said in words."""
    found = _decoded(data)
    if found is not None:
        name, values = found
        kind, words = _WORDS[name]
        return kind(words(*values), hint=_ADVICE.get(name))
    return _by_text(text)


def _by_text(text: str) -> NothingMade:
    said = text.removeprefix("execution reverted").removeprefix(":").strip() or "no reason given"
    if "exceeds balance" in said or "exceeds allowance" in said:
        return NoFunds(f"the token refuses: {said}")
    if "Pausable: paused" in said:
        return NoFunds("USDC is paused by its issuer: nobody can move any now", hint="later again; sealtune wallet show")
    if "Blacklistable:" in said:
        return NoFunds("the token's issuer has blacklisted one of the accounts: it moves no USDC",
                       hint="sealtune wallet show says whether it is yours")
    return NothingMade(f"the contract refuses: {said}")


def _decoded(data: str) -> tuple[str, tuple[Any, ...]] | None:
    from eth_abi.abi import decode
    from eth_abi.exceptions import DecodingError

    known = _selectors().get(data[:10].lower())
    if known is None:
        return None
    name, kinds = known
    try:
        return name, tuple(decode(kinds, bytes.fromhex(data[10:])))
    except (DecodingError, ValueError):
        return None


@functools.cache
def _selectors() -> Mapping[str, tuple[str, tuple[str, ...]]]:
    """Selector → name and argument types, of every error in the escrow's ABI."""
    from eth_hash.auto import keccak

    table = {}
    for entry in contracts.load("RentalEscrow").abi:
        if entry["type"] == "error":
            kinds = tuple(i["type"] for i in entry["inputs"])
            selector = bytes(keccak(f"{entry['name']}({','.join(kinds)})".encode()))[:4]
            table["0x" + selector.hex()] = (entry["name"], kinds)
    return table


def _time(seconds: int) -> str:
    """A chain's time for a reader; a number too large for a calendar stays a number."""
    if seconds > 253_402_300_799:
        return str(seconds)
    return datetime.fromtimestamp(seconds, UTC).strftime("%Y-%m-%d %H:%M:%S UTC")


def _hex(value: bytes) -> str:
    return "0x" + value.hex()


_WORDS: Mapping[str, tuple[type[NothingMade], Callable[..., str]]] = {
    "BadToken": (NothingMade, lambda token: f"no token at {token}"),
    "Reentered": (NothingMade, lambda: "the token called back into the escrow"),
    "NotAllowed": (NothingMade, lambda who: f"{who} has no part in this rental"),
    "RentalExists": (RentalExists, lambda id: f"rental {_hex(id)} exists already"),
    "WrongState": (WrongState, lambda id, state: f"rental {_hex(id)} is {_STATES[state % 4]}"),
    "TooLate": (TooLate, lambda until, now: f"possible until {_time(until)}, it is {_time(now)}"),
    "TooEarly": (NothingMade, lambda start, now: f"possible from {_time(start)} on, it is {_time(now)}"),
    "QuoteSpent": (OfferGone, lambda digest: f"the quote {_hex(digest)} was used or taken back"),
    "BadSignature": (OfferGone, lambda who: f"the quote is not signed by {who}"),
    "BadSeconds": (NothingMade, lambda asked, least, most: f"{asked} s of rental where {least} to {most} are possible"),
    "BadFee": (OfferGone, lambda bps, to: f"the quote's fee of {bps / 100:.2f} % to {to} is not allowed"),
    "AboveMaximum": (NothingMade, lambda amount, most: f"it would cost {amount} base units, {most} were allowed"),
    "BadDeposit": (NothingMade, lambda owed, has: f"the escrow would owe {owed} base units and have {has}"),
    "TransferFailed": (NothingMade, lambda who, amount: f"the token refuses to move {amount} base units of {who}"),
    "BudgetIsOpen": (NothingMade, lambda who: f"{who} has an open budget already"),
    "NoBudget": (NoBudget, lambda who: f"{who} has no open budget"),
    "BadProviders": (NothingMade, lambda: "the providers are not those that the budget was signed for"),
    "NothingToWithdraw": (NothingMade, lambda who: f"the escrow holds nothing for {who}"),
}

_ADVICE: Mapping[str, str] = {           # where a person can do something about it
    "NotAllowed": "sealtune wallet show says which wallet this is",
    "RentalExists": "sealtune escrow open",
    "WrongState": "somebody moved it in between: sealtune escrow show says how it stands",
    "TooLate": "sealtune escrow show says how it stands; an expired rental can be ended by anybody",
    "TooEarly": "the same command again, then",
    "QuoteSpent": "a fresh quote comes with a new run, or with sealtune resume",
    "BadSignature": "a fresh quote comes with a new run, or with sealtune resume",
    "BadSeconds": "another `hours:` in the run file",
    "AboveMaximum": "raise `budget:` in the run file",
    "TransferFailed": "sealtune wallet show says whether USDC is paused, or the account blocked",
    "NothingToWithdraw": "sealtune wallet show",
}
