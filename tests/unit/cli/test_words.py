"""What commands say around the work: the object on stdout whatever happens, plain words, nothing empty."""
from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from orchestrator.cli.person import Terminal
from orchestrator.cli.render import show_result
from orchestrator.cli.shapes.runs import Money, Run
from orchestrator.domain.event import Deed, Owed
from orchestrator.domain.names import lasting

RESULT: Run = {
    "run": "r", "verdict": None, "stages": [], "money": None, "owed": [], "report": None, "adapter": None,
    "evaluation": {"base": {"exact_match": None, "loss": None}, "adapter": {"exact_match": None, "loss": None}},
    "simulated": None, "error": None}
UNSETTLED: Money = {"token": "USDC", "deposit": "450000", "paid": None, "fee": None, "refunded": None, "gas_native": None}


@pytest.mark.parametrize("words", [["run", "none.yaml", "--json"], ["run", "--json", "--no-such-option"],
                                   ["status", "nobody", "--json"], ["nonsense", "--json"]])
def test_with_json_there_is_one_object_also_for_an_error(tmp_path: Path, words: list[str]) -> None:
    done = subprocess.run([sys.executable, "-m", "orchestrator", *words], capture_output=True, text=True, check=False,
                          env={"SEALTUNE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    error = json.loads(done.stdout)["error"]
    assert error["message"] and error["exit_code"] == done.returncode in (2, 10)
    assert error["message"].splitlines()[0] in done.stderr
    assert not list(tmp_path.rglob("runs/*")), "a name that was mistyped left something behind"


def test_a_look_at_rentals_starts_nothing(tmp_path: Path) -> None:
    (tmp_path / "lab").mkdir()
    (tmp_path / "lab" / "lab.json").write_text("{}")
    done = subprocess.run([sys.executable, "-m", "orchestrator", "rentals", "--json"], capture_output=True, text=True,
                          check=True, env={"SEALTUNE_HOME": str(tmp_path), "PATH": "/usr/bin:/bin"})
    assert json.loads(done.stdout) == {"rentals": [], "error": None} and "the lab is stopped" in done.stderr
    assert not (tmp_path / "lab" / "chain").exists()


@pytest.mark.parametrize(("seconds", "text"), [(60, "1 minute"), (360, "6 minutes"), (3600, "1 hour"), (9000, "2.5 hours")])
def test_time_in_words(seconds: int, text: str) -> None:
    assert lasting(seconds) == text


def test_a_run_that_did_nothing_has_no_empty_lines(capsys: pytest.CaptureFixture[str]) -> None:
    show_result(RESULT, "none")
    assert capsys.readouterr().out == "run r\nverdict  none\n"


def test_a_deposit_that_is_not_settled_is_said_to_be_there(capsys: pytest.CaptureFixture[str]) -> None:
    show_result({**RESULT, "money": UNSETTLED}, "none")
    assert "deposit 0.45 USDC, not settled yet" in capsys.readouterr().out


def test_the_live_line_is_gone_before_anything_is_asked(capsys: pytest.CaptureFixture[str]) -> None:
    person, hushed = Terminal(yes=True, understood=True), []
    person.hush = lambda: hushed.append(capsys.readouterr().err)
    person.interrupted([Owed("lease-1", "lease", Deed("lease-1", "open"), True)], giving_back=False)
    assert hushed == [""] and "still open, lease-1: a rented node" in capsys.readouterr().err


def test_an_interrupt_says_what_is_held_and_what_it_costs(capsys: pytest.CaptureFixture[str]) -> None:
    """It listed the journal's own words, a line each, and no price."""
    person = Terminal(yes=True, understood=True)
    person.costs = lambda: "0.45 USDC per hour"
    open_ = [Owed("lease-1", what, Deed("lease-1", "open"), what != "deposit")
             for what in ("lease", "deposit", "keeper", "files", "process")]
    person.interrupted(open_, giving_back=False)
    told = capsys.readouterr().err
    assert "lease-1: a rented node, perhaps its deposit, files on the node, a training that runs\n" in told
    assert "it costs 0.45 USDC per hour while it is open" in told


def test_the_first_interrupt_of_a_release_is_a_slip_the_second_is_meant() -> None:
    person = Terminal(yes=True, understood=True, on_interrupt="detach")
    assert [person.interrupted([], giving_back=True) for _ in range(2)] == ["wait", "stop"]
