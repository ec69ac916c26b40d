"""The age child: what it may know, and how its end is told."""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyrage
import pytest

from orchestrator.errors import BadInput, SealtuneError, Transient
from orchestrator.sealing import age_child
from orchestrator.sealing.child import SCRIPT, age

pytestmark = pytest.mark.sealed


def recipient() -> str:
    return str(pyrage.x25519.Identity.generate().to_public())


def running_child() -> str:
    """Arguments and environment of the children of this process that run the age script; "" when there is none."""
    found = subprocess.run(["ps", "-A", "-ww", "-E" if sys.platform == "darwin" else "e", "-o", "ppid=,args="],
                           capture_output=True, text=True)
    return "".join(line for line in found.stdout.splitlines()
                   if line.split()[:1] == [str(os.getpid())] and SCRIPT.name in line)


def test_the_child_is_told_nothing_but_its_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SEALTUNE_SECRET", "hunter2")
    with (tmp_path / "out").open("wb") as out, age(["seal", recipient()], "x.age", out.fileno()) as stdin:
        stdin.write(b"y")
        told = running_child()
    assert f"-I {SCRIPT} seal age1" in told and "hunter2" not in told


def test_a_body_that_fails_ends_the_child(tmp_path: Path) -> None:
    with (tmp_path / "out").open("wb") as out, pytest.raises(KeyboardInterrupt):
        with age(["seal", recipient()], "x.age", out.fileno()):
            raise KeyboardInterrupt
    assert not running_child()


@pytest.mark.parametrize(("arguments", "error", "told"), [
    (["seal", "age1nonsense"], BadInput, "not an age key that can seal or open x.age"),
    (["nonsense"], SealtuneError, "sealing x.age failed, exit code 1"),
    (["open", "999"], Transient, "x.age is damaged or cut short"),
])
def test_how_its_end_is_told(tmp_path: Path, arguments: list[str], error: type[Exception], told: str) -> None:
    with (tmp_path / "out").open("wb") as out, pytest.raises(error) as caught:
        with age(arguments, "x.age", out.fileno()) as stdin:
            stdin.write(str(pyrage.x25519.Identity.generate()).encode())
    assert str(caught.value) == told


def test_the_script_stands_alone() -> None:
    assert "orchestrator" not in "".join(line for line in Path(age_child.__file__).read_text().splitlines()
                                         if line.lstrip().startswith(("import ", "from ")))
