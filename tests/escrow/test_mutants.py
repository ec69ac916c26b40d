"""The tests notice mistakes, planted one by one into the contract: five on every run, all of them in the long form."""
from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.chain.contracts import build

from . import mutants, tools
from .mutants import MUTANTS, NAMED, Mutant

pytestmark = [pytest.mark.money, pytest.mark.skipif(not tools.there(), reason="python -m tests.escrow.tools was not run")]


@pytest.mark.parametrize("mutant", [m for m in MUTANTS if m.name in NAMED], ids=lambda m: m.name)
def test_five_mistakes_are_noticed(mutant: Mutant, tmp_path: Path) -> None:
    mutants.compile_mutant(mutant, tmp_path)
    assert mutants.killer(tmp_path, (NAMED[mutant.name],)), f"{mutant.name} survived"


@pytest.mark.full
@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda m: m.name)
def test_every_mistake_is_noticed(mutant: Mutant, tmp_path: Path) -> None:
    mutants.compile_mutant(mutant, tmp_path)
    assert mutants.killer(tmp_path), f"{mutant.name} survived"


def test_every_mistake_fits_the_sources() -> None:
    assert len({m.name for m in MUTANTS}) == len(MUTANTS) >= 25
    assert len(set(NAMED) & {m.name for m in MUTANTS}) == len(NAMED) == 5
    for mutant in MUTANTS:
        source = (build.HERE / mutant.source).read_text(encoding="utf-8")
        assert source.count(mutant.before) == 1, mutant.name
