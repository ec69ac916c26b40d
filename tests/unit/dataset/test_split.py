"""Which rows are held out."""
from __future__ import annotations

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.dataset.split import MOST, held_out, stamp

STAMPS = st.lists(st.integers(0, 2**64 - 1) | st.integers(0, 5), min_size=2, max_size=300).filter(
    lambda s: len(set(s)) > 1)


@given(STAMPS, st.randoms(use_true_random=False))
def test_the_order_of_the_rows_changes_nothing(stamps: list[int], chance: object) -> None:
    other = list(stamps)
    chance.shuffle(other)  # type: ignore[attr-defined]
    assert held_out(stamps) == held_out(other)


@given(STAMPS)
def test_both_sides_have_rows(stamps: list[int]) -> None:
    chosen = held_out(stamps)
    assert chosen and chosen < set(stamps)


@given(st.sets(st.integers(0, 2**64 - 1), min_size=2, max_size=300))
def test_a_tenth_where_all_rows_differ(stamps: set[int]) -> None:
    assert len(held_out(stamps)) == max(1, len(stamps) // 10)


def test_at_most_500() -> None:
    assert len(held_out(stamp(str(n).encode()) for n in range(20_000))) == MOST


def test_a_much_repeated_row_is_passed_over() -> None:
    rows = [b"often"] * 900 + [str(n).encode() for n in range(100)]
    stamps = [stamp(r) for r in rows]
    counts = Counter(stamps)
    assert sum(counts[s] for s in held_out(stamps)) <= 100


def test_one_row_alone_cannot_be_split() -> None:
    with pytest.raises(ValueError, match="two different"):
        held_out([7, 7, 7])


def test_the_draw_is_pinned() -> None:
    """A new release splits an old dataset as the old one did."""
    assert stamp(b'{"text":"a"}') == 232530674985501853
