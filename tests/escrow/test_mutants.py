"""The tests notice mistakes, planted one by one into the contract. Compiling each takes time, so all are long forms."""
from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.chain.contracts import build

from . import mutants, tools
from .mutants import MUTANTS, NAMED, Mutant

pytestmark = [pytest.mark.money, pytest.mark.skipif(not tools.there(), reason="python -m tests.escrow.tools was not run")]


def kill(mutant: Mutant, folder: Path) -> None:
    mutants.compile_mutant(mutant, folder)
    assert mutants.killer(folder), f"{mutant.name} survived"


@pytest.mark.full
@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.name in NAMED], ids=lambda m: m.name)
def test_five_mistakes_are_noticed(mutant: Mutant, tmp_path: Path) -> None:
    kill(mutant, tmp_path)


@pytest.mark.full
@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.name not in NAMED], ids=lambda m: m.name)
def test_every_mistake_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
    kill(mutant, tmp_path)


def test_every_mistake_fits_the_sources() -> None:
    assert len({m.name for m in MUTANTS}) == len(MUTANTS) >= 25
    for mutant in MUTANTS:
        source = (build.HERE / mutant.source).read_text(encoding="utf-8")
        assert source.count(mutant.before) == 1, mutant.name
