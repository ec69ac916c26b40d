"""Where a training begins: by the data and the size of the model, by the rules that the sources give."""
from __future__ import annotations

from decimal import Decimal

import pytest

from orchestrator.domain.price import Price
from orchestrator.planning import suggest
from orchestrator.planning.forecast import planned
from orchestrator.planning.models import must_be_named
from orchestrator.planning.prices import PRICES, usd


@pytest.mark.parametrize(("rows", "epochs"), [(1, 25), (4, 25), (10, 10), (33, 3), (34, 3), (500, 3), (8_333, 3), (9_000, 2),
                                              (20_000, 1), (1_000_000, 1)])
def test_epochs_follow_the_rows(rows: int, epochs: int) -> None:
    assert suggest.epochs(rows) == epochs


@pytest.mark.parametrize(("model", "rate"), [
    ("sealtune-lab/tiny-llama", "0.005"), ("Qwen/Qwen2.5-0.5B", "0.0002"), ("meta-llama/Llama-2-13b-hf", "0.0002"),
    ("Qwen/Qwen2.5-32B", "0.0001"), ("meta-llama/Llama-3.1-70B", "0.0001")])
def test_the_learning_rate_follows_the_size(model: str, rate: str) -> None:
    assert suggest.learning_rate(must_be_named(model).parameters()) == Decimal(rate)


@pytest.mark.parametrize(("longest", "length"), [(0, 256), (240, 256), (241, 384), (1_000, 1024), (100_000, 4096)])
def test_the_longest_row_is_whole(longest: int, length: int) -> None:
    assert suggest.length(longest) == length


@pytest.mark.parametrize(("model", "method"), [("Qwen/Qwen2.5-1.5B", "lora"), ("Qwen/Qwen2.5-14B", "qlora")])
def test_four_bits_only_where_they_are_needed(model: str, method: str) -> None:
    assert suggest.method(must_be_named(model), (("max_length", "1024"),), 24_564) == method


def test_the_budget_allows_for_the_plan_and_has_bounds() -> None:
    small = planned(must_be_named("Qwen/Qwen2.5-7B"), "qlora", (), 500, 50, 300, True)
    large = planned(must_be_named("Qwen/Qwen2.5-72B"), "qlora", (), 100_000, 2_000, 1000, True)
    assert suggest.budget(small, PRICES) == 2 and suggest.budget(large, PRICES) == suggest.MOST_DOLLARS
    dear = [Price("mine", "RTX 4090", usd("4.00"), "2026-12-01", "mine")]
    assert suggest.budget(small, dear) >= 12
    assert suggest.budget(small, ()) == suggest.FEW_DOLLARS


def test_every_suggested_model_can_be_planned_offline() -> None:
    assert all(must_be_named(model).parameters() > 10**9 for model in suggest.MODELS.values())
