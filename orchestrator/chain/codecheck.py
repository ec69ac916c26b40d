"""Is the contract at this address ours? Asked once, before anything is signed for it. Reads only."""
from __future__ import annotations

from ..domain.escrow import EscrowFacts
from ..errors import Refused
from . import contracts, networks, typed
from .rpc import Rpc

_HINT = "check the escrow, token and chain in your settings"
_DECIMALS = 6


def check(rpc: Rpc, expected: EscrowFacts) -> None:
    """Refused unless chain, code, token and signing domain are those that we know. Unreachable as ever."""
    _must_be_chain(rpc, expected)
    artefact, code = contracts.load("RentalEscrow"), rpc.code(expected.escrow)
    if not code:
        raise Refused(f"there is no contract at {expected.escrow} on chain {expected.chain_id}",
                      hint=f"{_HINT}; to put it there: sealtune escrow deploy")
    if not artefact.is_deployed_as(code):
        raise Refused(f"the contract at {expected.escrow} is not the escrow that this version knows", hint=_HINT)
    escrow = rpc.contract(expected.escrow, artefact.abi)
    token = str(escrow.read("token"))
    if token.lower() != expected.token.lower():
        raise Refused(f"the escrow takes the token {token}, not {expected.token}", hint=_HINT)
    if "0x" + bytes(escrow.read("DOMAIN_SEPARATOR")).hex() != typed.domain_separator(expected):
        raise Refused(f"the escrow at {expected.escrow} signs for another domain", hint=_HINT)
    _must_have_decimals(rpc, expected)


def must_be_token(rpc: Rpc, expected: EscrowFacts) -> None:
    """Refused unless this is the chain, and the token there its real USDC. Whatever the escrow is."""
    _must_be_chain(rpc, expected)
    if not rpc.code(expected.token):
        raise Refused(f"there is no token at {expected.token} on chain {expected.chain_id}", hint=_HINT)
    _must_have_decimals(rpc, expected)


def _must_be_chain(rpc: Rpc, expected: EscrowFacts) -> None:
    chain_id = rpc.chain_id()
    if chain_id != expected.chain_id:
        raise Refused(f"{rpc.name} is on chain {chain_id}, not {expected.chain_id}", hint=_HINT)
    networks.must_be_usdc(expected)


def _must_have_decimals(rpc: Rpc, expected: EscrowFacts) -> None:
    decimals = int(rpc.contract(expected.token, contracts.usdc().token_abi).read("decimals"))
    if decimals != _DECIMALS:
        raise Refused(f"the token {expected.token} has {decimals} decimals, not {_DECIMALS}", hint=_HINT)
