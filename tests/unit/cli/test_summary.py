"""What a person reads when a run is over."""
from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.render import show_result
from tests.unit.cli.test_words import RESULT


def test_the_summary_says_where_the_answers_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They hold rows, so they lie beside the adapter's folder; an older run has none there."""
    result = {**RESULT, "adapter": str(tmp_path / "visits")}
    show_result(result, "none")
    assert "answers" not in capsys.readouterr().out
    (tmp_path / "visits.evaluation.json").touch()
    show_result(result, "none")
    assert f"answers  {tmp_path / 'visits.evaluation.json'} (evaluation with held-out rows" in capsys.readouterr().out
