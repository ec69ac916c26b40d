"""What every command starts from: settings, the place of a run, its house. Wires, decides nothing."""
from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from .. import wiring
from ..domain.names import RunId
from ..errors import Refused
from ..house import House
from ..ports import Market, Observer, Person
from ..settings.places import state_dir
from ..settings.read import load_settings
from ..settings.values import RunFile, Settings
from ..wiring import Place
from .password import unlock

if TYPE_CHECKING:
    from ..chain.funds import Purse


@dataclass(frozen=True, slots=True)
class Desk:
    settings: Settings
    yes: bool = False
    _found_on: dict[str, Market] = field(default_factory=dict, repr=False)

    @classmethod
    def open(cls, yes: bool = False) -> Desk:
        return cls(load_settings(state_dir()), yes)

    def place(self, run_file: RunFile) -> Place:
        """Where this run's market is. The lab is brought up when it is meant, or when no open market is set up."""
        if run_file.market == "ssh":
            return Place("ssh", self.settings.hub)
        at = wiring.open_place(self.settings) if run_file.market == "open" else None
        return at or self.lab(said=run_file.market == "lab")

    def must_be_accepted(self, run_file: RunFile) -> None:
        """Where the money is real: what the escrow is, said; opted into and within the limit, or NoFunds."""
        at = wiring.open_place(self.settings) if run_file.market == "open" else None
        if at is None or at.limit is None:
            return
        from ..chain.networks import UNAUDITED

        at.limit.check(run_file.budget.units if run_file.budget else 0)
        note(f"note: real money: {UNAUDITED}; no deposit above {at.limit.most}")

    def is_lab(self, run_file: RunFile) -> bool:
        return run_file.market == "lab" or (run_file.market == "open" and self.settings.open is None)

    def lab(self, said: bool = True) -> Place:
        from ..lab.up import place, up

        if not said:
            note("no open market is set up: this is the lab on this machine, with play money")
        return place(up(self.settings.state, note))

    def market(self, place: Place, run_file: RunFile | None, begun: RunId | None = None) -> Market:
        """`begun`: the run that goes on there, or is ended; None for a new one. Without a run file it is for what is found
        there: one for all of that, so that the wallet is opened once."""
        from .browser import show_page

        if run_file is None and place.market in self._found_on:
            return self._found_on[place.market]
        made = wiring.market(self.settings, place, run_file, partial(unlock, file=place.password_file), self.vouch,
                             show_page, begun)
        if run_file is None:
            self._found_on[place.market] = made
        return made

    def money(self, lab: bool) -> Place:
        """Where the wallet's money is: the open market of the settings, else the lab of this machine."""
        at = None if lab else wiring.open_place(self.settings)
        return at or self.lab(said=lab)

    def purse(self, place: Place, key: bool = False, file: Path | None = None, of: str = "") -> Purse:
        """The wallet there; `key`: opened, to sign with. `file`: a password file that goes before the settings' one.
        `of`: another account, only to look at."""
        return wiring.purse(self.settings, place, partial(unlock, file=file or place.password_file) if key else None, of)

    def keystore(self) -> Path:
        """Where the person's own wallet is, or will be."""
        return self.settings.open.keystore if self.settings.open else self.settings.state / "wallet.json"

    def password_file(self, named: Path | None) -> Path | None:
        """The one named on the command line, else the settings' one."""
        return named or (self.settings.open.password_file if self.settings.open else None)

    def give(self, place: Place, to: str, units: int, payer: str) -> None:
        """Play money from the lab of this machine, and gas for the payer. Refused on any other chain."""
        from ..lab.deploy import give

        give(place.rpc[0], self.settings.state / "lab" / "chain", to, units, payer)

    @contextmanager
    def house(self, run: RunId, observer: Observer, person: Person, *, new: bool = False) -> Iterator[House]:
        """The run's house, locked by us. NoSuchRun, RunLocked."""
        run_file = wiring.run_file_of(self.settings, run)
        at = self.place(run_file)
        found = self.market(at, run_file, None if new else run)
        with wiring.opened(self.settings, run, run_file, found, at, observer, person, new=new) as house:
            yield house

    def vouch(self, question: str) -> bool:
        if self.yes:
            raise Refused("an unknown host key is not accepted with --yes",
                          hint="add `fingerprint:` to `ssh:` in the run file")
        return ask(f"{question} [y/N] ").lower() in ("y", "yes")


def note(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


def ask(question: str) -> str:
    """One line from the terminal. Refused where there is none."""
    if not sys.stdin.isatty():
        raise Refused("this needs an answer and there is no terminal to ask on", hint="--yes answers for you")
    print(question, end="", file=sys.stderr, flush=True)
    return sys.stdin.readline().strip()
