"""What is owed, and the newest row, as folds over any rows the ledger can write."""
from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.event import Deed, Event, Kind, head, last, owed
from orchestrator.domain.names import RunId
from orchestrator.journal.journals import Journals
from tests.fakes.clock import StoppedClock

pytestmark = pytest.mark.noleak
ACQUIRES = {"open": ("lease", "deposit"), "ship": ("data",), "start": ("process",)}
RELEASES = {"end": ("lease",), "settle": ("deposit",), "wipe": ("data",), "stop": ("process",)}
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(st.characters(exclude_categories=["Cs"])),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("abç/\n\"", max_size=3), inner,
                                                                                max_size=3), max_leaves=8)
MOVES = st.lists(st.tuples(st.sampled_from(["lease-1", "lease-2"]), st.sampled_from([*ACQUIRES, *RELEASES]),
                           st.sampled_from(list(Kind)), JSON, JSON), max_size=20)


def write(folder: Path, moves: list[tuple[str, str, Kind, object, object]]) -> tuple[list[Event], Journals]:
    """As the ledger does: done, failed and waived only after intended."""
    journals, clock = Journals(folder, StoppedClock()), StoppedClock()
    begun: set[tuple[str, str]] = set()
    with journals.create(RunId("r")) as journal:
        for scope, step, kind, public, private in moves:
            clock.sleep(1)
            if kind is Kind.INTENDED:
                begun.add((scope, step))
            elif kind is not Kind.NOTED and (scope, step) not in begun:
                continue
            acquires = ACQUIRES.get(step, ()) if kind in (Kind.INTENDED, Kind.DONE) else ()
            releases = RELEASES.get(step, ()) if kind in (Kind.DONE, Kind.WAIVED) else ()
            if kind is Kind.FAILED and not any(o.by == Deed(scope, step) for o in owed(journal.events())):
                continue
            journal.append(Deed(scope, step), kind, public, private, acquires, releases)
        return list(journal.events()), journals


@settings(max_examples=60, deadline=None)
@given(MOVES)
def test_rows_survive_and_owe_the_same(tmp_path_factory: pytest.TempPathFactory,
                                       moves: list[tuple[str, str, Kind, object, object]]) -> None:
    folder = tmp_path_factory.mktemp("state")
    rows, journals = write(folder, moves)
    journals.close()
    again = Journals(folder, StoppedClock())
    stored = list(again.read(RunId("r")))
    again.close()
    assert stored == rows and owed(stored) == owed(rows) and head(stored) == head(rows)
    open_: dict[tuple[str, str], bool] = {}
    for row in rows:                         # said once more, plainly
        for what in row.acquires:
            key = (row.deed.scope, what)
            open_[key] = open_.get(key, False) or row.kind is Kind.DONE
        if row.kind is Kind.FAILED:
            for what in ACQUIRES.get(row.deed.step, ()):
                if open_.get((row.deed.scope, what)) is False:
                    del open_[row.deed.scope, what]
        for what in row.releases:
            open_.pop((row.deed.scope, what), None)
    assert {(o.scope, o.what): o.certain for o in owed(rows)} == open_
    for row in rows:
        assert last(rows, row.deed, row.kind) == [r for r in rows if (r.deed, r.kind) == (row.deed, row.kind)][-1]
