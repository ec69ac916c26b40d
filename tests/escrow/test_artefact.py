"""What is committed is what the sources give, and what a chain holds can be told to be it."""
from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest

from orchestrator.chain import contracts
from orchestrator.chain.contracts import build, load, usdc

from .world import STRANGER, World, refused

pytestmark = pytest.mark.money
FOLDER = Path(contracts.__file__).parent
VENDORED = FOLDER / "vendor" / "usdc"


def test_the_artefact_names_its_sources() -> None:
    written = json.loads(build.ARTEFACT.read_text(encoding="utf-8"))
    found = {name: hashlib.sha256((FOLDER / name).read_bytes()).hexdigest() for name in build.SOURCES}
    assert written["sources"] == found
    assert written["compiler"]["version"] == build.SOLC


def test_deployed_code_is_recognised(world: World) -> None:
    artefact = load("RentalEscrow")
    code = world.chain.code(world.escrow.address)
    assert artefact.is_deployed_as(code)
    assert not artefact.is_deployed_as(code[:-1])
    assert not artefact.is_deployed_as(code + b"\0")
    assert not artefact.is_deployed_as(b"")
    assert not artefact.is_deployed_as(world.chain.code(world.token.address))
    changed = bytearray(code)
    changed[100] ^= 1
    assert not artefact.is_deployed_as(bytes(changed))


def test_it_fits_on_a_chain() -> None:
    assert len(load("RentalEscrow").deployed_bytecode) <= 24_576


def test_circles_files_are_the_ones_the_notice_names() -> None:
    notice = (VENDORED / "NOTICE").read_text(encoding="utf-8")
    for path in VENDORED.glob("*.json"):
        assert f"{hashlib.sha256(path.read_bytes()).hexdigest()}  {path.name}" in notice
    assert "Apache License" in (VENDORED / "LICENSE").read_text(encoding="utf-8")


def test_circles_token_is_linked(world: World) -> None:
    assert "_" in usdc().unlinked
    with pytest.raises(ValueError, match="not an address"):
        usdc().implementation("0x1234")
    assert (world.token.read("decimals"), world.token.read("version")) == (6, "2")
    with refused("Error"):
        world.token.send(STRANGER.address, "mint", STRANGER.address, 1)
