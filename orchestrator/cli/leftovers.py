"""The survey of open leases over every market that this machine knows, for `rentals` and `end`."""
from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager

from .. import wiring
from ..domain.names import RunId
from ..errors import BadInput, Refused
from ..house import House
from ..ports import Market
from ..sweep import Leftover, survey
from .desk import Desk, note
from .person import Terminal
from .screen import Lines, screen


def leftovers(desk: Desk, start: bool = True) -> Iterator[Leftover]:
    """Journals first, then what the markets show. Unreachable at the end when a market could not be asked. `start`: a
    lab that is stopped is brought up, so that what is left over in it can be ended; otherwise it is only said."""
    return survey(markets(desk, start), wiring.journals(desk.settings), wiring.clock(), desk.settings.contact_seconds)


def known_here(desk: Desk) -> Iterator[Leftover]:
    """What this laptop's journals say is open, without a question to anybody."""
    return survey([], wiring.journals(desk.settings), wiring.clock(), desk.settings.contact_seconds)


def markets(desk: Desk, start: bool = True) -> list[Callable[[], Market]]:
    """The open market of the settings and the lab of this machine, whichever exist; nothing is asked yet."""
    from ..lab.up import exists, running

    found: list[Callable[[], Market]] = []
    if at := wiring.open_place(desk.settings):
        found.append(lambda: desk.market(at, None))
    if not start and exists(desk.settings.state) and running(desk.settings.state) is None:
        note("the lab is stopped; what it knows is not asked: sealtune lab up")
    elif exists(desk.settings.state):
        found.append(lambda: desk.market(desk.lab(), None))
    return found


@contextmanager
def house_of(desk: Desk, run: RunId) -> Iterator[House]:
    """A known run's house to give things back with. Its journal suffices where its run file is lost; only for an own
    server must it be there, since nothing else knows the address's key file."""
    try:
        wiring.run_file_of(desk.settings, run)
    except BadInput:
        name = wiring.market_of(desk.settings, run)
        if name not in ("lab", "open"):
            raise
        with _on_market(desk, run, name, new=False) as house:
            yield house
        return
    with shown() as (lines, person), desk.house(run, lines, person) as house:
        yield house


@contextmanager
def house_for(desk: Desk, left: Leftover) -> Iterator[House]:
    """The house of a found lease: a journal of its own on the market that showed it, and no keys."""
    assert left.lease
    new = left.run not in wiring.journals(desk.settings).runs()
    with _on_market(desk, left.run, left.lease.market, new=new) as house:
        yield house


@contextmanager
def _on_market(desk: Desk, run: RunId, market: str, *, new: bool) -> Iterator[House]:
    place = desk.lab() if market == "lab" else wiring.open_place(desk.settings)
    if place is None:
        raise Refused(f"market {market} is not set up here", hint="add it to settings.yaml")
    with shown() as (lines, person), wiring.opened(desk.settings, run, None, desk.market(place, None), place, lines, person,
                                                   new=new) as house:
        yield house


@contextmanager
def shown() -> Iterator[tuple[Lines, Terminal]]:
    """The screen, and a person who only gives back: nothing is confirmed any more."""
    with closing(screen()) as lines:
        person = Terminal(yes=True, understood=True, on_interrupt="stop", exempt=True)
        person.hush = lines.close
        yield lines, person
