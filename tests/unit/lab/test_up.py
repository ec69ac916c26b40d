"""The lab as a whole: one that another release started is no use to this one."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.lab import sandbox, up

pytestmark = pytest.mark.journey


def test_a_lab_of_another_release_is_started_anew(tmp_path: Path) -> None:
    said: list[str] = []
    try:
        first = up.up(tmp_path, said.append)
        assert up.up(tmp_path, said.append) == first and not [line for line in said if "another release" in line]
        page = tmp_path / "lab" / "lab.json"
        page.write_text(json.dumps({**json.loads(page.read_text()), "release": "0.0.1 another escrow"}))
        again = up.up(tmp_path, said.append)
        assert again.provider_pid != first.provider_pid and again.release == first.release
        assert [line for line in said if "the lab that runs here is of another release" in line]
    finally:
        up.down(tmp_path)
        sandbox.remove(tmp_path / "lab" / "node")
