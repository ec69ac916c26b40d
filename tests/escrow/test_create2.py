"""Where the escrow would be on any chain: the address of CREATE2 is known before, and it is that one."""
from __future__ import annotations

from pathlib import Path

import pytest
from eth_abi.abi import encode
from eth_utils.crypto import keccak

from orchestrator.chain.contracts import load

from .nodechain import node
from .world import STRANGER, deploy_usdc

pytestmark = pytest.mark.money
DEPLOYER = "0x4e59b44847b379578588920ca78fbf26c0b4956c"      # the same on every chain; anvil has it from the start


def test_the_address_is_the_one_that_was_computed(tmp_path: Path) -> None:
    with node(tmp_path) as chain:
        artefact, salt = load("RentalEscrow"), bytes(32)
        code = artefact.bytecode + encode(["address"], [deploy_usdc(chain).address])
        wanted = keccak(b"\xff" + bytes.fromhex(DEPLOYER[2:]) + salt + keccak(code))[12:]
        assert chain.code("0x" + wanted.hex()) == b""
        chain.send(STRANGER.address, DEPLOYER, salt + code)
        assert artefact.is_deployed_as(chain.code("0x" + wanted.hex()))
