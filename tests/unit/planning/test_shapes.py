"""Shapes: the parameters that follow from a config are those that the hub shows, and what is not known is refused."""
from __future__ import annotations

from typing import Any

import pytest

from orchestrator.errors import BadInput
from orchestrator.lab import model as lab
from orchestrator.planning.models import TABLE, must_be_named, named, published
from orchestrator.planning.shapes import shape_of

LLAMA: dict[str, Any] = {"model_type": "llama", "vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
                         "num_hidden_layers": 32, "num_attention_heads": 32}


@pytest.mark.parametrize("model", TABLE)
def test_parameters_are_those_that_the_hub_shows(model: str) -> None:
    assert must_be_named(model).parameters() == published(model)


def test_the_labs_own_config_is_the_one_in_the_table() -> None:
    assert shape_of(lab.CONFIG) == named("sealtune-lab/tiny-llama")


@pytest.mark.parametrize("text", ["llama-3.1-8b", "LLAMA-3.1-8B", "meta-llama/llama-3.1-8b"])
def test_a_model_is_found_by_its_last_part_in_any_case(text: str) -> None:
    assert named(text) == named("meta-llama/Llama-3.1-8B") is not None


def test_a_name_that_is_not_in_the_table_is_told_the_nearest() -> None:
    with pytest.raises(BadInput) as refused:
        must_be_named("meta-llama/Llama-3.1-9B")
    assert "meta-llama/Llama-3.1-8B" in str(refused.value.hint)


def test_a_family_that_is_not_known_is_read_by_its_fields_and_called_rough() -> None:
    shape = shape_of({**LLAMA, "model_type": "newcomer"})
    assert shape.rough and shape.parameters() == 6_738_415_616


@pytest.mark.parametrize("change", [
    {"model_type": None}, {"num_local_experts": 8}, {"vision_config": {"hidden_size": 1}}, {"hidden_size": "4096"},
    {"num_hidden_layers": 0}, {"vocab_size": None}, {"vocab_size": True}, {"hidden_size": 10**12},
])
def test_what_cannot_be_read_is_refused(change: dict[str, Any]) -> None:
    with pytest.raises(BadInput):
        shape_of({**LLAMA, **change}, "owner/model")
