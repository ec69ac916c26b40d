"""The suites in Solidity: branch trees, fuzz, invariants, on the bytes that are shipped; and that trees and tests agree."""
from __future__ import annotations

import re
from pathlib import Path

import pytest

from . import forge, tools

pytestmark = [pytest.mark.money, pytest.mark.skipif(not tools.there(), reason="python -m tests.escrow.tools was not run")]
_CALLS = re.compile(r"invariant_EveryUnitIsSomebodys\(\) \(runs: \d+, calls: (\d+), reverts: (\d+)\)")


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return forge.suite(tmp_path_factory.mktemp("forge") / "suite")


def test_every_branch_and_every_number(project: Path) -> None:
    done = forge.run(project, "test", "--no-match-contract", "Invariants")
    assert done.returncode == 0, done.stdout + done.stderr


def test_no_invariant_breaks_in_25_000_calls(project: Path) -> None:
    done = forge.run(project, "test", "--match-contract", "Invariants")
    assert done.returncode == 0, done.stdout + done.stderr
    found = _CALLS.search(done.stdout)
    assert found, done.stdout
    calls, refused = int(found[1]), int(found[2])
    assert calls >= 25_000
    assert refused <= 0.12 * calls          # each of them as it must be; all others did something


@pytest.mark.parametrize("folder", [forge.SOURCES, forge.HERE, forge.HERE.parent], ids=lambda path: path.name)
def test_solidity_has_one_layout(folder: Path) -> None:
    done = forge.run(folder, "fmt", "--check", *sorted(str(path) for path in folder.glob("**/*.sol")))
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("tree", sorted(forge.HERE.glob("*.tree")), ids=lambda path: path.stem)
def test_every_leaf_of_a_tree_is_a_test(tree: Path) -> None:
    """A leaf's words are its test's name."""
    lines = [line.rstrip() for line in tree.read_text(encoding="utf-8").splitlines()[1:]]
    leaves = {_name(line) for line in lines if not re.match(r"^[├└]── when ", line)}
    source = tree.with_suffix(".t.sol").read_text(encoding="utf-8")
    assert leaves == set(re.findall(r"function (test_\w+)\(", source))


def _name(leaf: str) -> str:
    words = re.sub(r"^[│├└─\s]+", "", leaf).split()
    return "test_" + "".join(word[0].upper() + word[1:] for word in words)
