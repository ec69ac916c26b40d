"""One fingerprint for all rooms, the one that ssh-keygen prints."""
from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from orchestrator.domain.hostkey import fingerprint
from tests.fakes.labnode import new_key

KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIGPKSUTyz1HwHReFVvD5obVsALAgJRNarH4TRpNePnAS"


def test_as_ssh_keygen_prints_it(tmp_path: Path) -> None:
    tool = shutil.which("ssh-keygen")
    assert tool, "these tests need ssh-keygen"
    line = new_key()[1]
    (tmp_path / "key.pub").write_text(line)
    said = subprocess.run([tool, "-lf", str(tmp_path / "key.pub")], capture_output=True, text=True, check=True).stdout
    assert said.split()[1] == fingerprint(line)


def test_comment_plays_no_part() -> None:
    assert fingerprint(KEY) == fingerprint(f"{KEY} somebody") != ""


@pytest.mark.parametrize("line", ["", "ssh-ed25519", "ssh-ed25519 !!!!", "ssh-ed25519 AAA", "ssh-ed25519 \u00e4\u00e4"])
def test_what_is_no_key_has_none(line: str) -> None:
    assert fingerprint(line) == ""
