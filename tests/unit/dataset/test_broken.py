"""A folder of broken datasets, one fault each: every fault is found, at its line, alone, in the words of the golden file."""
from __future__ import annotations

import json

import pytest

from tests.fakes.broken import GOLDEN, Broken, broken, told

pytestmark = pytest.mark.data
ALL = broken()
EXPECTED = json.loads((GOLDEN / "expected.json").read_text())


def test_there_are_enough_and_no_others() -> None:
    assert len(ALL) >= 60
    assert {path.name for path in GOLDEN.iterdir()} == {one.name for one in ALL} | {"expected.json"} == EXPECTED.keys() | {
        "expected.json"}


@pytest.mark.parametrize("one", ALL, ids=lambda one: one.name)
def test_the_fault_is_found_at_its_line(one: Broken) -> None:
    assert (GOLDEN / one.name).read_bytes() == one.content, "python -m tests.fakes.broken writes them anew"
    found = told(GOLDEN / one.name)
    assert [(f["line"], f["code"]) for f in found] == [(one.line, one.code)]
    assert found == EXPECTED[one.name]
    assert all(f["mend"] for f in found)
