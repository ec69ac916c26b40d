"""That the shipped bytes are what the sources give, what holds of them at every moment and for every caller (halmos), and
what a reader of many contracts would ask about (slither), with the answers."""
from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from orchestrator.chain.contracts import build

from . import circle, doubles, forge, mutants, tools

pytestmark = [pytest.mark.money, pytest.mark.skipif(not tools.there(), reason="python -m tests.escrow.tools was not run")]
VENDORED = build.HERE / "vendor" / "usdc"
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
def compiled(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Any]:
    """Once for both who read it: it takes the longest of all."""
    folder = tmp_path_factory.mktemp("compiled")
    return folder, forge.compiled(folder)


def test_the_compiler_gives_the_committed_bytes(compiled: tuple[Path, Any]) -> None:
    assert build.written(compiled[1], build.read_sources()) == build.ARTEFACT.read_bytes()


def test_the_compiler_gives_the_tests_own_contracts(tmp_path: Path) -> None:
    soljson = Path(shutil.copy(tools.SOLJSON, tmp_path / "soljson.js"))
    assert doubles.compiled(soljson) == doubles.COMPILED.read_bytes()


def test_circles_sources_give_the_vendored_bytes(tmp_path: Path) -> None:
    vendored = {path.stem: json.loads(path.read_text(encoding="utf-8")) for path in VENDORED.glob("*.json")}
    found = circle.rebuilt(tmp_path)
    assert len(found) == 3
    assert {name: made | {"contractName": name} for name, made in found.items()} == vendored


def test_slither_finds_nothing_that_has_no_answer(compiled: tuple[Path, Any]) -> None:
    said = json.loads(_run(compiled[0], "slither", ".", "--ignore-compile", "--json", "-"))
    assert said["success"], said["error"]
    found = {(one["check"], "" if one["check"] == "timestamp" else one["elements"][0]["name"])
             for one in said["results"]["detectors"]}
    assert found == set(REASONS)


def test_three_properties_hold_at_every_moment_for_every_caller(tmp_path: Path) -> None:
    said = _run(forge.proof(tmp_path / "proof"), "halmos", "--function", "check_", "--solver-timeout-assertion", "60000")
    assert set(re.findall(r"\[PASS\]\S* (check_\w+)", said)) == PROPERTIES, said
    assert "3 passed; 0 failed" in said


@pytest.mark.full
@pytest.mark.parametrize(("mistake", "name"), [
    ("refund-of-all", "check_EveryUnitComesOut"), ("anyone-ends", "check_OnlyThePartiesEnd"),
    ("caller-is-paid", "check_NoOutsiderIsPaid")])
def test_each_property_can_fail(mistake: str, name: str, tmp_path: Path) -> None:
    """A proof about a set-up in which nothing can happen would pass too."""
    (mutant,) = (m for m in mutants.MUTANTS if m.name == mistake)
    project = forge.proof(tmp_path / "proof", mutants.compile_mutant(mutant, tmp_path / "mutant"))
    assert "[FAIL]" in _run(project, "halmos", "--function", name, "--solver-timeout-assertion", "60000")


def _run(project: Path, tool: str, *arguments: str) -> str:
    done = subprocess.run([str(tools.tool(tool)), *arguments], cwd=project, env=forge.environment(), capture_output=True,
                          text=True, timeout=300, check=False)
    assert done.stdout, done.stderr
    return done.stdout
