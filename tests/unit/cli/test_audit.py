"""`sealtune audit`: whatever a person names finds the same run, and an auditor elsewhere needs the public key only."""
from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from orchestrator.cli.app import app
from orchestrator.errors import BadInput, NoSuchRun
from tests.fakes.audited import RUN, SIGNER, Story

pytestmark = pytest.mark.evidence


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The laptop that made the report: its key, and the run's folder."""
    state = tmp_path / "state"
    monkeypatch.setenv("SEALTUNE_HOME", str(state))
    story = Story(state / "runs").told()
    (state / "runs" / "controller.key").rename(state / "controller.key")
    (state / "controller.key").chmod(0o600)
    assert story.home == state / "runs" / RUN
    return state


def asked(*arguments: object) -> Result:
    return CliRunner().invoke(app, ["audit", *map(str, arguments), "--json"])


def test_run_folder_and_file_are_the_same(state: Path) -> None:
    home = state / "runs" / RUN
    first = asked(RUN)
    assert first.exit_code == 3                  # made by another payload than this one's
    found = json.loads(first.stdout)
    assert [c["number"] for c in found["checks"] if c["word"] not in ("passed", "not applicable")] == [17]
    for named in (home, home / "lease-1", home / "lease-1/report.json", home / "closing.json"):
        assert asked(named).stdout == first.stdout


def test_an_auditor_elsewhere(state: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    copy = tmp_path / "handed on"
    shutil.copytree(state / "runs" / RUN, copy)
    monkeypatch.setenv("SEALTUNE_HOME", str(tmp_path / "auditor"))
    plain = CliRunner().invoke(app, ["audit", str(copy / "lease-1" / "report.json")])
    assert plain.exit_code == 3 and "which is not a key that you trust" in plain.stdout
    assert "--signer FILE with the public key" in plain.stderr
    assert not (tmp_path / "auditor" / "controller.key").exists()        # a look makes nothing
    for text in (f"{SIGNER.line}\n", f'renter namespaces="sealtune-report" {SIGNER.line}\n'):
        (tmp_path / "signer").write_text(text)
        found = json.loads(asked(copy / "lease-1" / "report.json", "--signer", tmp_path / "signer").stdout)
        assert {c["word"] for c in found["checks"] if c["number"] in (1, 8)} == {"passed"}


@pytest.mark.parametrize("text", ["", "# nobody\n", "me ssh-rsa AAAA\n", "x" * 2 ** 20 + "x", "me"])
def test_a_file_of_signers_without_a_key_is_refused(state: Path, tmp_path: Path, text: str) -> None:
    (tmp_path / "signer").write_text(text)
    problem = asked(RUN, "--signer", tmp_path / "signer").exception
    assert isinstance(problem, BadInput) and problem.hint and "--signer" in str(problem)


@pytest.mark.parametrize(("named", "hint"), [("contract-clause-1", f"sealtune audit {RUN}"), ("zzz", "sealtune status"),
                                             ("\x1b[2J", "sealtune status"), ("", "sealtune status")])
def test_a_name_that_nothing_has(state: Path, monkeypatch: pytest.MonkeyPatch, named: str, hint: str) -> None:
    monkeypatch.chdir(state / "runs")
    problem = asked(named).exception
    if not named:                                # this folder, in which no report is
        assert isinstance(problem, BadInput) and problem.hint
        return
    assert isinstance(problem, NoSuchRun) and str(problem).isprintable()
    assert problem.hint and problem.hint.startswith(hint)
