"""The plan inside the story: made from the checked data and the model's config, before anything is asked or rented."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator import steps
from orchestrator.domain.document import Json, decode, encode
from orchestrator.domain.names import Digest
from orchestrator.domain.training import Agreement, BaseModel, DatasetFacts
from orchestrator.errors import Refused
from orchestrator.house import House
from orchestrator.intents import worst_case
from orchestrator.ledger import once, result_of
from orchestrator.outlook import row_tokens
from orchestrator.planning.models import must_be_named
from orchestrator.rental import run
from orchestrator.task import Task
from tests.fakes.laptop import FakeHub, house
from tests.fakes.world import World
from tests.scenario.matrix import task


class Describing(FakeHub):
    """A hub with a model of the table, its config as that hub would have it."""

    def __init__(self, model: str) -> None:
        shape = must_be_named(model)
        self.config: dict[str, Json] = {
            "model_type": shape.family, "vocab_size": shape.vocabulary, "hidden_size": shape.hidden,
            "intermediate_size": shape.inner, "num_hidden_layers": shape.layers, "num_attention_heads": shape.heads,
            "num_key_value_heads": shape.kv_heads, "head_dim": shape.head_dim}

    def describe(self, base: BaseModel) -> Mapping[str, Json]:
        return self.config


def with_model(w: World, model: str) -> House:
    return replace(house(w), hub=Describing(model))


def checked(site: House, wanted: Task) -> House:
    once(site, steps.CHECK, lambda: steps.DataFile(str(wanted.dataset), wanted.format))
    once(site, steps.MODEL, lambda: steps.ModelName(wanted.model, wanted.revision))
    return site


def test_a_model_that_surely_does_not_fit_is_refused_before_anything_is_asked_or_rented() -> None:
    w = World("escrow")
    with pytest.raises(Refused, match="GPU memory, the training takes at least") as refused:
        run(with_model(w, "Llama-3.1-70B"), task())
    assert "method: qlora and a card like H100" in str(refused.value.hint) and refused.value.exit_code == 1
    assert w.rentals == [] and result_of(house(w), steps.AGREE) is None


def test_what_is_confirmed_says_what_is_expected_and_goes_through_the_journal() -> None:
    w, wanted = World("escrow"), replace(task(), seconds=None, method="qlora")
    agreed = worst_case(checked(with_model(w, "Llama-3.1-8B"), wanted), wanted)
    assert agreed.forecast and agreed.forecast.verdict == "fits" and agreed.forecast.seconds[1] > 0
    assert decode(Agreement, *encode(agreed)) == agreed


@pytest.mark.parametrize("changes", [{"engine": "rehearsal"}, {}])
def test_a_rehearsal_and_a_model_that_cannot_be_worked_out_are_not_planned(changes: dict[str, str]) -> None:
    w, wanted = World("escrow"), replace(task(), **changes)  # type: ignore[arg-type]
    made = with_model(w, "Llama-3.1-8B") if changes else house(w)
    assert worst_case(checked(made, wanted), wanted).forecast is None


def test_tokens_are_those_that_were_counted_else_a_guess_from_bytes(tmp_path: Path) -> None:
    facts = DatasetFacts(Digest("sha256:d"), "messages", "messages", 10, 9, 1, (), str(tmp_path / "rows.jsonl"))
    (tmp_path / "rows.jsonl").write_bytes(b"x" * 4000)
    assert row_tokens(facts) == 100 and row_tokens(replace(facts, row_tokens=7)) == 7
    (tmp_path / "rows.jsonl.gz").write_bytes(b"x" * 1000)
    assert row_tokens(replace(facts, path=str(tmp_path / "rows.jsonl.gz"))) == 100
    assert row_tokens(replace(facts, path=str(tmp_path / "gone.jsonl"))) == 8
