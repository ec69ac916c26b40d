"""What would stop a deposit, asked before anything is signed for it, in one question.

The token would refuse too, but only after an approval was paid for: approving works for a blacklisted account and in a
wallet that cannot pay for the next transaction. Reads only; what may change in between, the contracts refuse.
"""
from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ..domain.escrow import Budget, EscrowFacts
from ..errors import NoFunds, SealtuneError, Unreachable
from . import contracts, fees
from .rpc import Rpc

_APPROVE_AND_PAY = 56_000 + 308_000      # gas, measured on the lab's chain


def deposit(rpc: Rpc, facts: EscrowFacts, policy: fees.Policy, account: str, amount: int) -> int:
    """The allowance that the escrow has now, in base units. NoFunds: paused, blacklisted, too little USDC, too little of
    the chain's coin for an approval and the deposit after it."""
    *trouble, allowed, coin = _asked(rpc, facts, account)
    _must_move(trouble, facts, account, amount)
    if allowed < amount:
        bid, base = fees.today(rpc, policy)
        if coin < (least := _APPROVE_AND_PAY * (base + bid.tip)):
            raise NoFunds(f"{account} has {coin / 10**18:.6f} POL, paying a deposit takes about {least / 10**18:.6f} POL",
                          hint="send it some of the chain's own coin: sealtune wallet fund")
    return allowed


def budget(rpc: Rpc, facts: EscrowFacts, policy: fees.Policy, wanted: Budget, gas: int) -> None:
    """NoFunds as for a deposit, of the owner's money; and where its session cannot pay so much gas."""
    *trouble, _, _ = _asked(rpc, facts, wanted.owner)
    _must_move(trouble, facts, wanted.owner, wanted.cap)
    bid, base = fees.today(rpc, policy)
    if (coin := rpc.balance(wanted.session)) < (least := gas * (base + bid.tip)):
        raise NoFunds(f"this laptop's second key {wanted.session} has {coin / 10**18:.6f} POL, the gas of a run takes about "
                      f"{least / 10**18:.6f} POL", hint="send it some of the chain's own coin: sealtune wallet fund")


def _must_move(trouble: Sequence[int], facts: EscrowFacts, account: str, amount: int) -> None:
    """`trouble`: paused, account barred, escrow barred, owned."""
    paused, barred, escrow_barred, owned = trouble
    if paused:
        raise NoFunds("USDC is paused by its issuer: nobody can move any now", hint="later again; sealtune wallet show")
    if barred:
        raise NoFunds(f"the issuer of USDC has blocked {account}", hint="make another wallet: sealtune wallet new")
    if escrow_barred:
        raise NoFunds(f"the issuer of USDC has blocked the escrow {facts.escrow}: nothing can be paid into it")
    if owned < amount:
        raise NoFunds(f"{account} has {owned / 10**6:.6f} USDC, {amount / 10**6:.6f} USDC are needed",
                      hint="send it some USDC, the native one of this chain: sealtune wallet fund")


def _asked(rpc: Rpc, facts: EscrowFacts, account: str) -> list[int]:
    token = rpc.contract(facts.token, contracts.usdc().token_abi)
    calls = [("paused", ()), ("isBlacklisted", (account,)), ("isBlacklisted", (facts.escrow,)), ("balanceOf", (account,)),
             ("allowance", (account, facts.escrow))]
    questions: list[tuple[str, list[Any]]] = [
        ("eth_call", [{"to": facts.token, "data": "0x" + token.encode(name, *of).hex()}, "latest"]) for name, of in calls]
    answers = rpc.batch([*questions, ("eth_getBalance", [account, "latest"])])
    return [_number(answer) for answer in answers]


def _number(answer: Any) -> int:
    if isinstance(answer, SealtuneError):
        raise answer
    try:
        return int(answer, 16)
    except (TypeError, ValueError):
        raise Unreachable("the chain node's answer about the token is no number") from None
