"""Setting the environment up is interrupted: words, not a traceback, and nothing half-made is trusted."""
from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from orchestrator.bootstrap import ROOT, ensure


@pytest.mark.parametrize("module", ["orchestrator", "tests"])
def test_an_interrupt_while_setting_up_is_said_in_words(tmp_path: Path, module: str) -> None:
    clone, tools = tmp_path / "clone", tmp_path / "bin"
    for part in ("orchestrator", "tests"):
        (clone / part).mkdir(parents=True)
        for name in ("__init__.py", "__main__.py", "bootstrap.py", "requirements.lock"):
            if (ROOT / part / name).exists():
                shutil.copy(ROOT / part / name, clone / part / name)
    (clone / "pyproject.toml").touch()
    tools.mkdir()
    (tools / "uv").write_text("#!/bin/sh\nexec sleep 60\n")
    (tools / "uv").chmod(0o755)
    going = subprocess.Popen([sys.executable, "-S", "-m", module, "--help"], cwd=clone, start_new_session=True, text=True,
                             stderr=subprocess.PIPE, stdout=subprocess.DEVNULL,
                             env={"PATH": f"{tools}{os.pathsep}/usr/bin:/bin"},
                             preexec_fn=lambda: signal.signal(signal.SIGINT, signal.default_int_handler))
    deadline = time.monotonic() + 20
    while not (clone / ".venv.making").exists():
        assert time.monotonic() < deadline and going.poll() is None
        time.sleep(0.05)
    time.sleep(0.3)
    os.killpg(going.pid, signal.SIGINT)
    _, said = going.communicate(timeout=20)
    assert going.returncode == 130 and "Traceback" not in said and "interrupted" in said
    assert not list((clone / ".venv").rglob("*.lock-digest")) if (clone / ".venv").exists() else True


def test_an_environment_that_lacks_its_command_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut between the packages and the command `sealtune`: the next start must make it whole."""
    tools, venv, lock = tmp_path / "bin", tmp_path / "venv", tmp_path / "own" / "requirements.lock"
    for folder in (tools, lock.parent):
        folder.mkdir()
    lock.touch()
    (tools / "uv").write_text(f"#!/bin/sh\nmkdir -p {venv}/lib/python3/site-packages {venv}/bin/sealtune\n")
    (tools / "uv").chmod(0o755)
    monkeypatch.setenv("PATH", f"{tools}{os.pathsep}/usr/bin:/bin")
    with pytest.raises(IsADirectoryError):
        ensure(venv, lock)
    assert (venv / "lib" / "python3" / "site-packages" / "sealtune.pth").is_file()
    assert not list(venv.rglob("*.lock-digest"))
