"""What an owner signs to open a budget: a transfer of USDC to the escrow, which the escrow alone can make (EIP-3009).

The token's own signing domain is read from the chain and compared with what the token itself makes of it: a token that
looks like USDC (USDC.e) has another, and a signature for it would be worth nothing, or something else.
"""
from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from ..domain.escrow import Budget, EscrowFacts
from ..domain.money import USDC, Money
from ..errors import Refused
from . import contracts, typed
from .bridge import Document
from .rpc import Rpc

_DOMAIN = (("name", "string"), ("version", "string"), ("chainId", "uint256"), ("verifyingContract", "address"))
_RECEIVE = (("from", "address"), ("to", "address"), ("value", "uint256"), ("validAfter", "uint256"),
            ("validBefore", "uint256"), ("nonce", "bytes32"))


def domain(rpc: Rpc, facts: EscrowFacts) -> dict[str, Any]:
    """Of the token. Refused where what it says of itself does not make the separator that it checks signatures with."""
    token = rpc.contract(facts.token, contracts.usdc().token_abi)
    found: dict[str, Any] = {"name": str(token.read("name")), "version": str(token.read("version")),
                             "chainId": facts.chain_id, "verifyingContract": facts.token}
    if "0x" + bytes(token.read("DOMAIN_SEPARATOR")).hex() != separator(found):
        raise Refused(f"the token {facts.token} signs for another domain than {found['name'][:40]!r} on chain "
                      f"{facts.chain_id}", hint="check `token:` and `chain_id:`; a keystore wallet pays without it")
    return found


def separator(found: dict[str, Any]) -> str:
    from eth_account.messages import encode_typed_data

    empty = {"types": {"EIP712Domain": _fields(_DOMAIN), "Nothing": []}, "primaryType": "Nothing", "domain": found,
             "message": {}}
    return "0x" + bytes(encode_typed_data(full_message=empty).header).hex()


def document(facts: EscrowFacts, of_token: dict[str, Any], budget: Budget) -> Document:
    """`of_token`: see `domain`. The transfer's number is the digest of the budget's terms, so they cannot be changed."""
    message = {"from": budget.owner, "to": facts.escrow, "value": budget.cap, "validAfter": 0,
               "validBefore": budget.expiry, "nonce": typed.digest(typed.message(facts, budget))}
    return Document(words(facts, budget), {
        "types": {"EIP712Domain": _fields(_DOMAIN), "ReceiveWithAuthorization": _fields(_RECEIVE)},
        "primaryType": "ReceiveWithAuthorization", "domain": of_token, "message": message})


def words(facts: EscrowFacts, budget: Budget) -> str:
    """What it means, for the person who signs."""
    until = datetime.fromtimestamp(budget.expiry, UTC).strftime("%Y-%m-%d %H:%M UTC")
    whom = "the providers that were found" if budget.providersHash.strip("0x") else "any provider"
    return (f"Move {Money(budget.cap, USDC)} into the escrow {facts.escrow}, for rentals from {whom} at no more than "
            f"{Money(budget.maxPricePerHour, USDC)} per hour, until {until}. What is not used comes back to you when the "
            "run is over; nobody else can take it.")


def _fields(kinds: tuple[tuple[str, str], ...]) -> list[dict[str, str]]:
    return [{"name": name, "type": kind} for name, kind in kinds]
