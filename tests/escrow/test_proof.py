"""What holds for every number (halmos) and what a reader of many contracts would ask about (slither), with the answers."""
from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path

import pytest

from . import forge, tools

pytestmark = [pytest.mark.money, pytest.mark.full,
              pytest.mark.skipif(not tools.there(), reason="python -m tests.escrow.tools was not run")]
PROPERTIES = {"check_EveryUnitComesOut", "check_OnlyThePartiesEnd", "check_NoOutsiderIsPaid"}

_CLOCK = """A rental is a span of time, so every deadline is compared with the block's. A validator moves it by seconds at
most, which is worth less than a second's price; windows are minutes."""
_ENUM = "The state is an enumeration that the contract computed itself, not a balance that somebody could send to."
REASONS = {
    ("timestamp", ""): _CLOCK,
    ("incorrect-equality", "show"): _ENUM,
    ("incorrect-equality", "_push"): "The token's answer is compared with true, the one word that means yes.",
    ("incorrect-equality", "_sendHome"): "Nothing is not sent. The amount comes from our books, not from a balance.",
    ("low-level-calls", "_push"): "A refusal by the token must become a credit, so it must not revert; the answer is read.",
    ("low-level-calls", "signedBy"): "A wallet's refusal must become a no; a staticcall cannot change anything.",
    ("naming-convention", "DOMAIN_SEPARATOR"): "The name that EIP-2612 gave it, which wallets look for.",
    ("naming-convention", "TOKEN"): "An immutable, written as the constant that it is to a reader.",
}


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return forge.proof(tmp_path_factory.mktemp("proof") / "proof")


def test_slither_finds_nothing_that_has_no_answer(project: Path) -> None:
    said = json.loads(_run(project, "slither", ".", "--json", "-"))
    assert said["success"], said["error"]
    found = {(one["check"], "" if one["check"] == "timestamp" else one["elements"][0]["name"])
             for one in said["results"]["detectors"]}
    assert found == set(REASONS)


def test_three_properties_hold_for_every_number(project: Path) -> None:
    said = _run(project, "halmos", "--function", "check_", "--solver-timeout-assertion", "60000")
    assert set(re.findall(r"\[PASS\]\S* (check_\w+)", said)) == PROPERTIES, said
    assert "3 passed; 0 failed" in said


def _run(project: Path, tool: str, *arguments: str) -> str:
    done = subprocess.run([str(tools.tool(tool)), *arguments], cwd=project, env=forge.environment(), capture_output=True,
                          text=True, timeout=300, check=False)
    assert done.stdout, done.stderr
    return done.stdout
