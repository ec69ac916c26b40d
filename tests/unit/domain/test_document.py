"""Documents: canonical bytes, strict reading, and peers that nest a hundred thousand brackets."""
from __future__ import annotations

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.document import canonical, must_be_shallow, parse

TREES = st.recursive(st.none() | st.booleans() | st.integers(-2**53, 2**53) | st.text(max_size=20),
                     lambda kids: st.lists(kids, max_size=4) | st.dictionaries(st.text(max_size=6), kids, max_size=4),
                     max_leaves=20)


@given(TREES)
def test_what_is_spelled_is_read_again(tree: object) -> None:
    assert parse(canonical(tree), depth=64, values=10_000) == tree


@pytest.mark.parametrize("deep", [b"[" * 100_000, b'{"a":' * 100_000, b'["\\"]", ' + b"[" * 100_000])
def test_deep_nesting_never_reaches_a_recursive_reader(deep: bytes) -> None:
    """web3 lifts Python's recursion limit to 100,000, and the decoder written in C then overflows its stack."""
    program = ("import sys; sys.setrecursionlimit(100_000)\nfrom orchestrator.domain.document import parse\n"
               "try: parse(sys.stdin.buffer.read())\nexcept ValueError as e: print(e)")
    done = subprocess.run([sys.executable, "-c", program], input=deep, capture_output=True, check=False)
    assert (done.returncode, done.stdout) == (0, b"nested too deep\n")


@pytest.mark.parametrize("text", [b'"[[[[[[[[[["', b'"\\"[[[[[[[["', b'{"a":"]]]]{{{{{{{{{{{{"}', b'"\\\\"'])
def test_brackets_inside_text_do_not_count(text: bytes) -> None:
    must_be_shallow(text, 2)


@pytest.mark.parametrize("text", [b"1.5", b"NaN", b'{"a":1,"a":2}', b"[1", b"\xff", b"[[[[[[[[[[1]]]]]]]]]]"])
def test_what_is_no_document(text: bytes) -> None:
    with pytest.raises(ValueError):
        parse(text)
