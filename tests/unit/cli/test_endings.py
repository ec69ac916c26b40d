"""The end of a run, as a person reads it: who interrupts learns what is left, and where nothing is left no word of debts."""
from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator import wiring
from orchestrator.audit.words import GIVEN_UP, given_up
from orchestrator.cli.desk import Desk
from orchestrator.cli.person import Terminal
from orchestrator.cli.play import explained, undisturbed
from orchestrator.cli.render import show_result
from orchestrator.domain.event import Deed, Kind, Owed
from orchestrator.domain.names import RunId
from orchestrator.errors import Interrupted, LeaveNode, NodeLost, NoOffer, Refused, StillOwed, Transient, Unreachable
from orchestrator.settings.read import load_settings
from tests.unit.cli.test_words import RESULT

HOLDER, ASKED = RunId("holder-1"), RunId("asked-1")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    """Its journal knows one run that holds a lease."""
    found = Desk(load_settings(tmp_path))
    with wiring.journals(found.settings).create(HOLDER) as journal:
        journal.append(Deed("lease-1", "open"), Kind.INTENDED, acquires=("lease", "deposit"))
    return found


def test_no_offer_because_an_own_rental_holds_the_machine(desk: Desk) -> None:
    told = explained(desk, ASKED, (), NoOffer("no offer at all on this market", hint="try again later"))
    assert isinstance(told, NoOffer) and "sealtune rentals" in str(told.hint) and "end --leaked" in str(told.hint)
    own = explained(desk, HOLDER, (), NoOffer("no offer at all on this market", hint="try again later"))
    assert own.hint == "try again later", "a run is not in its own way"


def test_whoever_leaves_while_something_may_bill_is_told_and_gets_five(desk: Desk) -> None:
    rows = wiring.journals(desk.settings).read(HOLDER)
    told = explained(desk, HOLDER, rows, Interrupted("interrupted, nothing is rented"))
    assert isinstance(told, StillOwed) and told.exit_code == 5
    assert str(told) == "interrupted; still open: lease of lease-1 (perhaps), deposit of lease-1 (perhaps)"
    assert f"sealtune end {HOLDER}" in str(told.hint) and f"sealtune resume {HOLDER}" in str(told.hint)


def test_nothing_owed_is_one_hundred_and_thirty(desk: Desk) -> None:
    told = explained(desk, ASKED, (), Interrupted("interrupted, nothing is rented", hint="sealtune resume asked-1"))
    assert (told.exit_code, told.hint) == (130, None), "there is nothing to go on with"
    assert explained(desk, ASKED, (), Refused("no")).exit_code == 1


def test_an_impatient_interrupt_does_not_cost_the_last_words() -> None:
    with undisturbed():
        os.kill(os.getpid(), signal.SIGINT)
    with pytest.raises(KeyboardInterrupt):
        os.kill(os.getpid(), signal.SIGINT)


def test_what_does_not_train_yet_cannot_be_left_alone(capsys: pytest.CaptureFixture[str]) -> None:
    """During the install, `detach` once meant stop, without a word."""
    person = Terminal(yes=True, understood=True, on_interrupt="detach")
    lease, process = (Owed("lease-1", what, Deed("lease-1", "start"), True) for what in ("lease", "process"))
    assert person.interrupted([lease, process], giving_back=False) == "detach"
    assert person.interrupted([lease], giving_back=False) == "stop"
    assert "no training has begun that could be left alone" in capsys.readouterr().err


@pytest.mark.parametrize(("owed", "line"), [
    (["lease-1/lease", "lease-1/keys", "run/home key"], "owed     lease-1/lease\n"),
    (["run/home key"], "keys     still on this laptop; sealtune resume r goes on with them, sealtune end r destroys them\n"),
    ([], "")])
def test_keys_on_this_laptop_are_no_debt(owed: list[str], line: str, capsys: pytest.CaptureFixture[str]) -> None:
    show_result({**RESULT, "owed": owed}, "none")
    assert capsys.readouterr().out == f"run r\n{line}verdict  none\n"


def test_why_a_wipe_was_given_up_is_said_in_words() -> None:
    for problem in (NodeLost, LeaveNode, Transient, Unreachable):
        assert problem.__name__ in GIVEN_UP and problem.__name__ not in given_up(problem.__name__)
    assert given_up("ErrorOfALaterRelease") == "given up: it could not be done"


def test_an_interrupt_before_the_command_line_is_there_is_no_traceback(tmp_path: Path) -> None:
    """The import of the command line takes a moment, in which Ctrl-C may come."""
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    done = subprocess.run([sys.executable, "-m", "orchestrator", "status"], capture_output=True, text=True, check=False,
                          env={"SEALTUNE_HOME": str(tmp_path), "PYTHONPATH": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert done.returncode == 130 and done.stderr == "sealtune: interrupted before anything was begun\n"
