"""The survey of open leases over every market that this machine knows, for `rentals` and `end`."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from .. import wiring
from ..domain.names import RunId
from ..errors import Refused
from ..house import House
from ..ports import Market
from ..sweep import Leftover, survey
from .desk import Desk
from .person import Terminal
from .screen import screen


def leftovers(desk: Desk) -> Iterator[Leftover]:
    """Journals first, then what the markets show. Unreachable at the end when a market could not be asked."""
    return survey(markets(desk), wiring.journals(desk.settings), wiring.clock(), desk.settings.contact_seconds)


def markets(desk: Desk) -> list[Callable[[], Market]]:
    """The open market of the settings and the lab of this machine, whichever exist; nothing is asked yet."""
    from ..lab.up import exists

    found: list[Callable[[], Market]] = []
    if at := wiring.open_place(desk.settings):
        found.append(lambda: desk.market(at, None))
    if exists(desk.settings.state):
        found.append(lambda: desk.market(desk.lab(), None))
    return found


@contextmanager
def house_of(desk: Desk, run: RunId) -> Iterator[House]:
    """A known run's house to give things back with."""
    with desk.house(run, screen(False), quiet()) as house:
        yield house


@contextmanager
def house_for(desk: Desk, left: Leftover) -> Iterator[House]:
    """The house of a found lease: a journal of its own on the market that showed it, and no keys."""
    assert left.lease
    place = desk.lab() if left.lease.market == "lab" else wiring.open_place(desk.settings)
    if place is None:
        raise Refused(f"market {left.lease.market} is not set up here", hint="add it to settings.yaml")
    new = left.run not in wiring.journals(desk.settings).runs()
    with wiring.opened(desk.settings, left.run, None, desk.market(place, None), place.hub, screen(False), quiet(),
                       new=new) as house:
        yield house


def quiet() -> Terminal:
    return Terminal(yes=True, understood=True, on_interrupt="stop", exempt=True)
