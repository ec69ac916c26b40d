"""The survey of open leases over every market that this machine knows, for `rentals` and `end`."""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from .. import wiring
from ..domain.names import RunId
from ..errors import NoSuchRun
from ..house import House
from ..ports import Market
from ..sweep import Leftover, survey
from .desk import Desk
from .person import Terminal
from .screen import screen


def leftovers(desk: Desk) -> Iterator[Leftover]:
    """Journals first, then what the markets show. Raises Unreachable when a market cannot be listed."""
    return survey(all_markets(desk), wiring.journals(desk.settings), wiring.clock(), desk.settings.contact_seconds)


def all_markets(desk: Desk) -> Market:
    """The open market of the settings and the lab of this machine, whichever exist, as one."""
    from ..lab.up import exists
    from ..marketplace.registry import Registry

    registry = Registry()
    if at := wiring.open_place(desk.settings):
        registry.add("open", lambda: desk.market(at, None))
    if exists(desk.settings.state):
        registry.add("lab", lambda: desk.market(desk.lab(), None))
    return registry.markets()


@contextmanager
def house_of(desk: Desk, run: RunId) -> Iterator[House]:
    """A run's house to give things back with; for a run unknown here, one that knows only the markets."""
    person = Terminal(yes=True, understood=True, on_interrupt="stop", exempt=True)
    try:
        with desk.house(run, screen(False), person) as house:
            yield house
        return
    except NoSuchRun:
        if not run.startswith("found-"):
            raise
    with wiring.opened(desk.settings, run, None, all_markets(desk), desk.settings.hub, screen(False), person,
                       new=run not in wiring.journals(desk.settings).runs()) as house:
        yield house
