"""What a person reads when a run is over."""
from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.render import show_figures, show_result
from orchestrator.cli.result import result
from orchestrator.cli.shapes.runs import Run
from orchestrator.domain.document import encode
from orchestrator.domain.event import Deed, Event, Kind
from orchestrator.domain.names import Digest, Instant, RunId
from orchestrator.domain.spool import Adapter, Figures
from tests.unit.cli.test_words import RESULT


def test_the_summary_says_where_the_answers_are(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """They hold rows, so they lie beside the adapter's folder; an older run has none there."""
    result: Run = {**RESULT, "adapter": str(tmp_path / "visits")}
    show_result(result, "none")
    assert "answers" not in capsys.readouterr().out
    (tmp_path / "visits.evaluation.json").touch()
    show_result(result, "none")
    assert f"answers  {tmp_path / 'visits.evaluation.json'} (evaluation with held-out rows" in capsys.readouterr().out


@pytest.mark.parametrize(("base", "adapter", "lines"), [
    (("0.02", "6.319"), ("1", "0.016"), ["                  base   adapter", "exact match       2.0%    100.0%",
                                         "loss             6.319     0.016"]),
    (("", "6.3"), ("", "0.1"), ["                  base   adapter", "loss             6.300     0.100"]),
    (("", ""), ("1", "0.1"), ["                  base   adapter", "exact match          -    100.0%",
                              "loss                 -     0.100"]),
    (("0.5", "1"), ("", ""), ["                  base   adapter", "exact match      50.0%         -",
                              "loss             1.000         -"]),
    (("", ""), ("", ""), [])])
def test_figures_that_a_node_left_out_are_a_dash(base: tuple[str, str], adapter: tuple[str, str], lines: list[str],
                                                 tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A loss that is no number is "" in the journal, and ends neither `--json` nor the summary."""
    public, private = encode(Adapter(Digest("sha256:a"), Figures(*base), Figures(*adapter), 50, 8, str(tmp_path)))
    row = Event(0, Digest("genesis"), Instant(1), Deed("lease-1", "collect"), Kind.DONE, (), (), public, private)
    show_figures(result(RunId("r"), tmp_path, [row], None, None)["evaluation"])
    assert capsys.readouterr().out.splitlines() == lines
