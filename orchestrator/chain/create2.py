"""The escrow at the same address on every chain with the same token: put there through the well-known CREATE2 proxy.

The address follows from the proxy's, a salt and the code with its token, so that anyone can deploy it, it does not
matter who does, and nobody can put something else there.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..domain.escrow import EscrowFacts
from ..errors import Refused
from . import codecheck, contracts, typed
from .rpc import Rpc
from .sender import Sender

PROXY = "0x4e59b44847b379578588920cA78FbF26c0B4956C"
PROXY_CODE = bytes.fromhex("7f" + "ff" * 31 + "e0"
                           "3601600081602082378035828234f58015156039578182fd5b8082525050506014600cf3")
SALT = bytes(32)


@dataclass(frozen=True, slots=True)
class Deployed:
    """`transaction`: None where it was there already."""

    facts: EscrowFacts
    transaction: str | None


def init_code(token: str) -> bytes:
    return contracts.load("RentalEscrow").bytecode + typed.bytes32(token)


def address(token: str) -> str:
    """Where this version's escrow for this token is, or would be, with its checksum."""
    from eth_hash.auto import keccak
    from eth_utils.address import to_checksum_address

    made = keccak(b"\xff" + bytes.fromhex(PROXY[2:]) + SALT + bytes(keccak(init_code(token))))
    return str(to_checksum_address(bytes(made)[12:]))


def deploy(rpc: Rpc, sender: Sender, chain_id: int, token: str) -> Deployed:
    """Put it there unless it is, then compare every byte. Refused: wrong chain, no token, no proxy, other code."""
    facts = EscrowFacts(chain_id, address(token), token)
    codecheck.must_be_token(rpc, facts)
    transaction = None
    with sender.turn(f"deploy:{facts.escrow}"):
        if not rpc.code(facts.escrow):
            if rpc.code(PROXY) != PROXY_CODE:
                raise Refused(f"chain {chain_id} has no CREATE2 proxy at {PROXY}",
                              hint="the small lab chain over py-evm has none; install Foundry for a lab with anvil")
            key = sender.fresh_key(f"deploy:{facts.escrow}")
            transaction = sender.send(key, PROXY, SALT + init_code(token)).hash
    codecheck.check(rpc, facts)
    return Deployed(facts, transaction)
