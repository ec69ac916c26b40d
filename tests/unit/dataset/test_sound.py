"""Sound datasets in public styles: no fault, no doubt, no false alarm."""
from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.dataset.check import check
from tests.fakes.sound import sound

pytestmark = pytest.mark.data
ALL = sound()


def test_there_are_enough() -> None:
    assert len(ALL) >= 20


@pytest.mark.parametrize("name", ALL)
def test_nothing_is_found(tmp_path: Path, name: str) -> None:
    path = tmp_path / name
    path.write_bytes(ALL[name])
    found = check(path)
    assert [str(one) for one in found.tally.kept if one.weight != "note"] == []
    assert found.rows == 240 and found.held_out == 24
