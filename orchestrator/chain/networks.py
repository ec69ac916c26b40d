"""The chains that sealtune knows: what each is called, which token is the real USDC there, and what is at stake.

A table and pure checks of it. Knows no wallet and asks no chain. The token addresses are those that Circle publishes;
an address that is one character off is another token.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..domain.escrow import EscrowFacts
from ..domain.money import USDC, Money
from ..errors import NoFunds, Refused

UNAUDITED = "the escrow contract has not been audited by anyone"


@dataclass(frozen=True, slots=True)
class Network:
    """One chain. `usdc`: Circle's own token, "" where every deployment has its own. `bridged`: a token that looks like
    it and is another. `real`: what is lost there is lost."""

    chain_id: int
    name: str
    usdc: str
    bridged: str = ""
    real: bool = False


LAB = Network(31337, "the lab on this machine", "")
AMOY = Network(80002, "Polygon Amoy (test network)", "0x41E94Eb019C0762f9Bfcf9Fb1E58725BfB0e7582")
POLYGON = Network(137, "Polygon", "0x3c499c542cEF5E3811e1192ce70d8cC03d5c3359",
                  "0x2791Bca1f2de4661ED88A30C99A7a9449Aa84174", real=True)
_BY_ID = {network.chain_id: network for network in (LAB, AMOY, POLYGON)}


@dataclass(frozen=True, slots=True)
class Limit:
    """How much a deposit may be on a chain where it is real. `accepted`: the person opted in, in the settings."""

    most: Money
    accepted: bool

    def check(self, total: int) -> None:
        """`total`: the whole deposit in base units. NoFunds, because no other offer helps."""
        if not self.accepted:
            raise NoFunds(f"this would pay real money into an escrow that was not opted into: {UNAUDITED}",
                          hint="read what that means, then add `accept_unaudited: true` to `open:` in settings.yaml")
        if total > self.most.units:
            raise NoFunds(f"a deposit of {Money(total, USDC)} is above the limit of {self.most}: {UNAUDITED}",
                          hint="a smaller `budget:` in the run file, or `most_deposit:` of `open:` in settings.yaml")


def network(chain_id: int) -> Network:
    """Refused for a chain that we know nothing of."""
    if chain_id not in _BY_ID:
        known = ", ".join(f"{n.chain_id} ({n.name})" for n in _BY_ID.values())
        raise Refused(f"chain {chain_id} is none that sealtune knows: {known}", hint="check `chain_id:` in settings.yaml")
    return _BY_ID[chain_id]


def must_be_usdc(facts: EscrowFacts) -> None:
    """Refused for a token that only looks like USDC."""
    known = network(facts.chain_id)
    if not known.usdc or facts.token.lower() == known.usdc.lower():
        return
    hint = f"`token: \"{known.usdc}\"` in settings.yaml, or leave it out"
    if facts.token.lower() == known.bridged.lower():
        raise Refused(f"the token {facts.token} is USDC.e, a bridged one; {known.name} has its own USDC", hint=hint)
    raise Refused(f"the token {facts.token} is not the USDC of {known.name}", hint=hint)
