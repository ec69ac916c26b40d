"""The compiled contracts, as data: the escrow that a rental pays into, and Circle's token for tests and the lab.

Nothing here talks to a chain. Standard library only. `RentalEscrow.json` is written by build.py and never by hand;
vendor/usdc/NOTICE says where the token's files come from.
"""
from __future__ import annotations

import json
from dataclasses import dataclass
from importlib import resources
from typing import Any


@dataclass(frozen=True, slots=True)
class Artefact:
    """One compiled contract.

    `bytecode` is what a deployment sends, before the ABI-encoded constructor arguments. `deployed_bytecode` is what
    lies at the address afterwards, zeros at `immutable_references`: (start, length) in bytes.
    """

    name: str
    abi: list[dict[str, Any]]
    bytecode: bytes
    deployed_bytecode: bytes
    immutable_references: tuple[tuple[int, int], ...]

    def is_deployed_as(self, code: bytes) -> bool:
        """Whether `code`, read from a chain, is this contract, whatever its immutables hold."""
        if len(code) != len(self.deployed_bytecode):
            return False
        masked = bytearray(code)
        for start, length in self.immutable_references:
            masked[start:start + length] = bytes(length)
        return bytes(masked) == self.deployed_bytecode


@dataclass(frozen=True, slots=True)
class Usdc:
    """Circle's FiatTokenV2_2. To deploy:

    1. `checker`; 2. `implementation(address of the checker)`; 3. `proxy` with the implementation as its argument.
       Who deploys the proxy is its admin, and an admin cannot call the token through it.
    4. Through the proxy with `token_abi`: initialize(name, symbol, currency, 6, masterMinter, pauser, blacklister,
       owner), initializeV2(name), initializeV2_1(address that gets what was sent to the token), initializeV2_2([],
       symbol); as the master minter configureMinter(minter, allowance); as that minter mint(to, amount).
    """

    checker: Artefact
    proxy: Artefact
    token_abi: list[dict[str, Any]]
    unlinked: str
    links: tuple[int, ...]

    def implementation(self, checker_address: str) -> bytes:
        """The token's bytecode, its library put in."""
        address = bytes.fromhex(checker_address.removeprefix("0x"))
        if len(address) != 20:
            raise ValueError(f"not an address: {checker_address}")
        code = self.unlinked.removeprefix("0x")
        for start in self.links:
            code = code[:2 * start] + address.hex() + code[2 * start + 40:]
        return bytes.fromhex(code)


def load(name: str) -> Artefact:
    """One of our own contracts: "RentalEscrow"."""
    found = _read(f"{name}.json")
    return Artefact(
        name=found["contractName"],
        abi=found["abi"],
        bytecode=bytes.fromhex(found["bytecode"].removeprefix("0x")),
        deployed_bytecode=bytes.fromhex(found["deployedBytecode"].removeprefix("0x")),
        immutable_references=tuple((place["start"], place["length"]) for place in found["immutableReferences"]),
    )


def usdc() -> Usdc:
    token = _read("vendor", "usdc", "FiatTokenV2_2.json")
    places = token["linkReferences"]["contracts/util/SignatureChecker.sol"]["SignatureChecker"]
    return Usdc(
        checker=_vendored("SignatureChecker"),
        proxy=_vendored("FiatTokenProxy"),
        token_abi=token["abi"],
        unlinked=token["bytecode"],
        links=tuple(place["start"] for place in places),
    )


def _vendored(name: str) -> Artefact:
    found = _read("vendor", "usdc", f"{name}.json")
    return Artefact(found["contractName"], found["abi"], bytes.fromhex(found["bytecode"].removeprefix("0x")), b"", ())


def _read(*path: str) -> dict[str, Any]:
    text = resources.files(__name__).joinpath(*path).read_text(encoding="utf-8")
    found: dict[str, Any] = json.loads(text)
    return found
