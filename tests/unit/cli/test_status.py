"""`status` says where a run stands, in words about the run."""
from __future__ import annotations

import pytest

from orchestrator.cli.status import in_words, is_over, state_of
from orchestrator.domain.document import encode
from orchestrator.domain.event import GENESIS, Deed, Event, Kind
from orchestrator.domain.names import Instant, Reason
from orchestrator.task import Away, Leaving

DAY = 86_400


def row(deed: str, kind: Kind, value: object = None, acquires: tuple[str, ...] = (),
        releases: tuple[str, ...] = ()) -> Event:
    public, private = encode(value)
    scope, step = deed.split("/")
    return Event(1, GENESIS, Instant(0), Deed(scope, step), kind, acquires, releases, public, private)


OPENED = row("lease-1/open", Kind.DONE, acquires=("lease", "deposit"))
ENDED = row("lease-1/settle", Kind.DONE, releases=("lease", "deposit"))
DETACHED = row("lease-1/detached", Kind.NOTED, Away(Instant(DAY)))
LEFT = row("lease-1/left", Kind.NOTED, Leaving(Reason.FAILED, detail="training ended as failed"))
HOME = row("lease-1/collect", Kind.DONE)
HOME_KEY = row("run/home key", Kind.DONE, acquires=("home key",))
FORGOTTEN = row("run/forget", Kind.DONE, releases=("home key",))


@pytest.mark.parametrize(("rows", "state", "words"), [
    ([OPENED], "open", "renting a node: done"),
    ([OPENED, DETACHED], "detached", "left alone until 1970-01-02 00:00 UTC"),
    ([OPENED, DETACHED, row("lease-1/attached", Kind.NOTED, Away(Instant(9)))], "open", "renting a node: done"),
    ([OPENED, DETACHED, LEFT], "open", "renting a node: done"),
    ([OPENED, LEFT, ENDED], "stopped", "given back, nothing is owed: training ended as failed"),
    ([row("run/check", Kind.DONE)], "stopped", "nothing was rented"),
    ([OPENED, HOME, ENDED], "done", "the adapter is home, nothing is owed"),
], ids=["open", "detached", "attached", "left", "failed", "never", "done"])
def test_states_in_words(rows: list[Event], state: str, words: str) -> None:
    newest = [e for e in rows if e.kind is not Kind.NOTED][-1]
    assert state_of(rows, False, Instant(10)) == state
    assert in_words(state, rows, newest) == words


def test_a_detached_run_whose_time_is_over_is_open() -> None:
    assert state_of([OPENED, DETACHED], False, Instant(DAY)) == "open"


def test_a_run_in_use_is_running() -> None:
    assert state_of([OPENED], True, Instant(10)) == "running"


def test_over_is_a_run_with_its_adapter_home_and_every_key_gone() -> None:
    done = [HOME_KEY, OPENED, HOME, ENDED]
    assert not is_over([]) and not is_over([OPENED, LEFT, ENDED]) and not is_over(done)
    assert is_over([*done, FORGOTTEN])
