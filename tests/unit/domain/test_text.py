"""Nothing of a stranger reaches a terminal as more than text."""
from __future__ import annotations

import unicodedata

from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.text import clean, clean_block

HOSTILE = ["\x1b]52;c;ZXZpbA==\x07", "\x1b[2J\x1b[H", "\x9b31m", "ok\rall is well", "a\x08\x08b", "\u202egpj.exe",
           "\u2066x\u2069", "\u2028", "\ufeff", "\u200b", "\x00", "\x7f", "\U000e0041", "\ud800"]


def test_corpus() -> None:
    for text in HOSTILE:
        for before in ("", "GPU ", "ä"):
            shown = clean(before + text + before)
            assert shown.isascii() and (not shown or shown.isprintable()), repr(text)


@given(st.text(st.characters(codec=None), max_size=80), st.integers(1, 50))
def test_anything(text: str, limit: int) -> None:
    shown = clean(text, limit)
    assert len(shown) <= limit and shown.isascii() and (not shown or shown.isprintable())


def test_look_alikes_and_letters_that_turn_the_line_are_not_shown() -> None:
    assert clean("R\u0422X 4090 \u05d0\u05d1") == "R?X 4090 ??"


@given(st.binary(max_size=200))
def test_blocks(data: bytes) -> None:
    shown = clean_block(data)
    assert all(c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cf", "Cs", "Zl", "Zp") for c in shown)
    shown.encode()


def test_honest_text_is_left_alone() -> None:
    assert clean("NVIDIA GeForce RTX 4090, 24564 MiB") == "NVIDIA GeForce RTX 4090, 24564 MiB"
    assert clean("one\n two\t three ") == "one two three"
    assert clean_block("Grüße\r\n\tund mehr".encode()) == "Grüße\n\tund mehr"
