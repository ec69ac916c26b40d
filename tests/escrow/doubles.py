"""The test contracts of Doubles.sol, compiled. `python -m tests.escrow.doubles` compiles them anew."""
from __future__ import annotations

import json
import tempfile
from enum import IntEnum
from functools import cache
from pathlib import Path
from typing import Any

from orchestrator.chain.contracts import build

from .chain import Chain, Contract
from .world import STRANGER

HERE = Path(__file__).resolve().parent
COMPILED = HERE / "doubles.json"


class Token(IntEnum):
    """OddToken.Habit"""

    NONE, TAKES_FEE, RETURNS_FALSE, RETURNS_NOTHING, RETURNS_TWO, REVERTS, BURNS_GAS, CALLS_BACK = range(8)


class Wallet(IntEnum):
    """Wallet.Habit"""

    SIGNS, REFUSES, REVERTS, REVERTS_YES, ANSWERS_SHORT, ANSWERS_TRUE = range(6)


def deploy(chain: Chain, name: str) -> Contract:
    made = _compiled()[name]
    return Contract(chain, chain.deploy(STRANGER.address, bytes.fromhex(made["bytecode"])), made["abi"])


def compiled(soljson: Path) -> bytes:
    """The bytes of doubles.json, from its source."""
    output = build.compile_sources(soljson, {"Doubles.sol": (HERE / "Doubles.sol").read_text(encoding="utf-8")})
    found = {name: {"abi": made["abi"], "bytecode": made["evm"]["bytecode"]["object"]}
             for name, made in output["contracts"]["Doubles.sol"].items()}
    return (json.dumps(found, indent=1) + "\n").encode()


@cache
def _compiled() -> Any:
    return json.loads(COMPILED.read_text(encoding="utf-8"))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="solc-") as folder:
        COMPILED.write_bytes(compiled(build.fetch_solc(Path(folder))))
