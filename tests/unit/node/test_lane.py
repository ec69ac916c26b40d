"""A lane knows whether any word of ours ever reached the node; whoever must give back asks it."""
from __future__ import annotations

from collections.abc import Callable

import pytest

from orchestrator.domain.names import LeaseKey
from orchestrator.errors import NodeLost
from orchestrator.node.connection import Pace, Unreached
from orchestrator.node.lane import Lane
from orchestrator.node.transport import SafeTransport


class Door:
    """A dialer that never gets through."""

    pace = Pace()

    def __init__(self, fail: Callable[[], BaseException]) -> None:
        self._fail = fail

    def dial(self) -> SafeTransport:
        raise self._fail()


@pytest.mark.parametrize(("fail", "told"), [(KeyboardInterrupt, KeyboardInterrupt), (lambda: Unreached("no"), NodeLost)],
                         ids=["Ctrl-C while dialling", "never reached"])
def test_nothing_was_said_so_nothing_can_be_there(fail: Callable[[], BaseException], told: type[BaseException]) -> None:
    lane = Lane(Door(fail), b"", LeaseKey("1" * 64), patience=0)  # type: ignore[arg-type]
    with pytest.raises(told) as cut:
        lane.within(lambda agent: None)
    assert cut.value.untouched  # type: ignore[attr-defined]
