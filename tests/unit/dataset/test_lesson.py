"""What rows would teach, told from sound sets in public styles."""
from __future__ import annotations

from pathlib import Path

import pytest

from orchestrator.cli.told import answered
from orchestrator.dataset.check import check
from orchestrator.dataset.lesson import lesson
from orchestrator.dataset.source import Source
from tests.fakes.sound import sound

pytestmark = pytest.mark.data
ALL = sound()
TAUGHT = {
    "code.jsonl": ("behaviour", "short"), "sql.jsonl": ("behaviour", "short"), "sums.jsonl": ("behaviour", "short"),
    "sentiment.jsonl": ("behaviour", "label"), "labelled.jsonl": ("behaviour", "label"),
    "extraction.jsonl": ("behaviour", "short"), "html.jsonl": ("behaviour", "short"),
    "spanish-chat.jsonl": ("behaviour", "short"), "long-texts.jsonl": ("knowledge", "long"),
    "plain-german.jsonl": ("knowledge", "long"), "faq.jsonl": ("knowledge", "short"),
    "russian-faq.jsonl": ("knowledge", "short"), "japanese-faq.jsonl": ("unsure", "short"),
}


@pytest.mark.parametrize("name", TAUGHT)
def test_what_a_set_teaches(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(ALL[name])
    answers, why, facts = answered(check(tmp_path / name))
    assert (answers["need"], answers["answer"]) == TAUGHT[name]
    assert answers["examples"] == "240" and len(why) == 1 and facts["looked_into"] == 240


def test_labels_that_are_not_trained_on_are_told(tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_bytes(ALL["labelled.jsonl"])
    assert "its label as completion" in answered(check(tmp_path / "x.jsonl"))[1][0]


def test_codes_are_no_facts_and_no_rows_are_no_lesson(tmp_path: Path) -> None:
    page = tmp_path / "x.jsonl"
    page.write_text('{"prompt": "Code it: gout for weeks", "completion": "M10-R"}\n' * 3)
    assert lesson(Source(page), "prompt_completion").foreign == 0
    page.write_text("")
    assert lesson(Source(page), "prompt_completion").rows == 0
