"""Is the escrow at an address what this version says it is? Every question asked and answered, for a person to read.

codecheck.py stops at the first no, before anything is signed; this page goes through all of it and signs nothing.
"""
from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence

from ..domain.escrow import EscrowFacts
from ..domain.evidence import Check
from ..errors import Refused
from . import contracts, create2, networks, typed
from .rpc import Contract, Rpc


def verify(rpc: Rpc, facts: EscrowFacts) -> Sequence[Check]:
    """Numbered checks. Unreachable where the chain does not answer."""
    found = [*_network(rpc, facts), *_contract(rpc, facts)]
    return [Check(number, text, held, why, applies)
            for number, (text, held, why, applies) in enumerate(found, 1)]


_Answer = tuple[str, bool | None, str, bool]


def _network(rpc: Rpc, facts: EscrowFacts) -> Iterator[_Answer]:
    chain_id = rpc.chain_id()
    yield f"the chain is {facts.chain_id}", chain_id == facts.chain_id, f"it says {chain_id}", True
    try:
        networks.must_be_usdc(facts)
        own = "each lab has a token of its own" if not networks.network(facts.chain_id).usdc else ""
        yield "the token is the chain's own USDC", True, own or facts.token, not own
    except Refused as no:
        yield "the token is the chain's own USDC", False, str(no), True


def _contract(rpc: Rpc, facts: EscrowFacts) -> Iterator[_Answer]:
    artefact, code = contracts.load("RentalEscrow"), rpc.code(facts.escrow)
    same = artefact.is_deployed_as(code)
    digest = hashlib.sha256(artefact.deployed_bytecode).hexdigest()
    why = f"sha256 {digest} without the token's address" if same else "other code" if code else "no code there"
    yield f"the code at {facts.escrow} is this version's, byte for byte", same, why, True
    home = create2.address(facts.token)
    at_home = facts.escrow.lower() == home.lower()
    yield ("its address follows from its code", True, home if at_home else f"put there another way, not at {home}", at_home)
    contract = rpc.contract(facts.escrow, artefact.abi)
    yield from _state(rpc, facts, contract) if same else _unasked()


def _state(rpc: Rpc, facts: EscrowFacts, contract: Contract) -> Iterator[_Answer]:
    token = str(contract.read("token"))
    yield "it takes that token and no other", token.lower() == facts.token.lower(), token, True
    domain = "0x" + bytes(contract.read("DOMAIN_SEPARATOR")).hex()
    yield "what is signed for it is valid there alone", domain == typed.domain_separator(facts), domain, True
    at = rpc.block().number
    owes = contract.read("held", at=at) + contract.read("credits", at=at)
    has = rpc.contract(facts.token, contracts.usdc().token_abi).read("balanceOf", facts.escrow, at=at)
    yield "it has what it owes", has >= owes, f"has {has}, owes {owes} base units at block {at}", True


def _unasked() -> Iterator[_Answer]:
    for text in ("it takes that token and no other", "what is signed for it is valid there alone", "it has what it owes"):
        yield text, None, "the code is another", True
