"""Which files of a listing are taken, whatever a hub says."""
from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.errors import BadInput
from orchestrator.hub.files import Entry, check_config, described, entries, shards_of, weights

JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=12) | st.floats(),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
                        st.sampled_from(["rfilename", "size", "lfs", "sha256", "blobId", "weight_map", "auto_map"]),
                        inner, max_size=4), max_leaves=15)


def entry(name: str) -> dict[str, Any]:
    return {"rfilename": name, "size": 1, "blobId": "0" * 40}


def test_code_pickles_and_folders_are_left_alone() -> None:
    names = ["config.json", "tokenizer.json", "merges.txt", "model.safetensors", "modeling.py", "pytorch_model.bin",
             "original/model.safetensors", "model.fp16.safetensors", "README.md", "chat_template.jinja"]
    listing = entries([entry(name) for name in names])
    taken = [e.name for e in described(listing, "a/b") + weights(listing, None, "a/b")]
    assert taken == ["chat_template.jinja", "config.json", "merges.txt", "tokenizer.json", "model.safetensors"]


def test_the_size_and_digest_of_a_large_file_are_those_behind_the_pointer() -> None:
    row = {"rfilename": "model.safetensors", "size": 134, "blobId": "0" * 40,
           "lfs": {"sha256": "ab" * 32, "size": 10**9}}
    assert entries([row])["model.safetensors"] == Entry("model.safetensors", 10**9, "ab" * 32, None)


@given(JSON)
def test_any_listing(tree: Any) -> None:
    try:
        found = entries(tree)
    except (ValueError, KeyError, TypeError, AttributeError):
        return                                   # what the client turns into Unreachable
    assert all(isinstance(e.name, str) and e.size >= 0 for e in found.values())


@given(JSON)
def test_any_index_and_any_config(tree: Any) -> None:
    for read in (lambda: shards_of(tree, "a/b"), lambda: check_config("config.json", tree, "a/b")):
        with pytest.raises(BadInput):
            read()
