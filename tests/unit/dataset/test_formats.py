"""Every format, row by row: what becomes of it, and how a fault is told without telling the row."""
from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.dataset.faults import Fault
from orchestrator.dataset.formats import CONVERTERS, convert, detect, spell
from orchestrator.dataset.lines import MOST_LINE_BYTES, parse

ASK, ANSWER = {"role": "user", "content": "ask"}, {"role": "assistant", "content": "answer"}
SYSTEM = {"role": "system", "content": "be brief"}


def row(text: str) -> dict[str, Any]:
    return parse(2, text.encode())


@pytest.mark.parametrize(("format", "given", "made"), [
    ("text", {"text": "a b"}, {"text": "a b"}),
    ("prompt_completion", {"prompt": "ask", "completion": "answer"}, {"messages": [ASK, ANSWER]}),
    ("prompt_completion", {"prompt": [SYSTEM, ASK], "completion": [ANSWER]}, {"messages": [SYSTEM, ASK, ANSWER]}),
    ("messages", {"messages": [SYSTEM, ASK, ANSWER, ASK, ANSWER]}, {"messages": [SYSTEM, ASK, ANSWER, ASK, ANSWER]}),
    ("messages", {"messages": [{"role": "User", "content": [{"type": "text", "text": "ask"}]}, ANSWER]},
     {"messages": [ASK, ANSWER]}),
    ("alpaca", {"instruction": "ask", "output": "answer"}, {"messages": [ASK, ANSWER]}),
    ("alpaca", {"instruction": "ask", "input": "", "output": "answer"}, {"messages": [ASK, ANSWER]}),
    ("alpaca", {"instruction": "ask", "input": "this", "output": "answer", "system": "be brief"},
     {"messages": [SYSTEM, {"role": "user", "content": "ask\n\nthis"}, ANSWER]}),
    ("dolly", {"instruction": "ask", "context": "this", "response": "answer", "category": "open"},
     {"messages": [{"role": "user", "content": "ask\n\nthis"}, ANSWER]}),
    ("question_answer", {"question": "ask", "answer": "answer"}, {"messages": [ASK, ANSWER]}),
    ("sharegpt", {"conversations": [{"from": "human", "value": "ask"}, {"from": "gpt", "value": "answer"}]},
     {"messages": [ASK, ANSWER]}),
    ("sharegpt", {"system": "be brief", "conversations": [{"from": "human", "value": "ask"},
                                                          {"from": "gpt", "value": "answer"}]},
     {"messages": [SYSTEM, ASK, ANSWER]}),
])
def test_what_becomes_of_a_row(format: str, given: dict[str, Any], made: dict[str, Any]) -> None:
    assert convert(format, row(json.dumps(given))) == made
    assert detect(given) == format


@pytest.mark.parametrize(("format", "text", "told"), [
    ("text", '{"text": ""}', "'text' is empty"),
    ("text", '{"text": 5}', "'text' is a number, text is needed"),
    ("text", '{"text": null}', "'text' is null, text is needed"),
    ("text", '{"texts": "a"}', "no 'text'"),
    ("text", '{"prompt": "a", "completion": "b"}', "no 'text', this looks like prompt_completion and not like text"),
    ("prompt_completion", '{"prompt": "a", "completion": " "}', "'completion' is empty"),
    ("prompt_completion", '{"prompt": "a", "completion": []}',
     "'prompt' and 'completion' must both be text, or both lists of messages"),
    ("alpaca", '{"instruction": "a", "input": 1, "output": "b"}', "'input' is a number, text is needed"),
    ("messages", '{"messages": []}', "the conversation is empty"),
    ("messages", '{"messages": "a"}', "the conversation is text, a list is needed"),
    ("messages", '{"messages": ["a"]}', "message 1 is text, an object is needed"),
    ("messages", '{"messages": [{"role": "user"}]}', "message 1 has no 'content'"),
    ("messages", '{"messages": [{"role": "tool", "content": "a"}]}',
     "message 1 has a role that is not known (system, user, assistant)"),
    ("messages", '{"messages": [{"role": "user", "content": "a"}]}',
     "the conversation does not end with an answer of the assistant"),
    ("messages", '{"messages": [{"role": "system", "content": "a"}]}',
     "the conversation does not end with an answer of the assistant"),
    ("messages", '{"messages": [{"role": "user", "content": "a"}, {"role": "user", "content": "b"}]}',
     "message 2 is of the user, one of the assistant is due"),
    ("messages", '{"messages": [{"role": "user", "content": "a"}, {"role": "assistant", "content": ""}]}',
     "message 2 is empty"),
    ("messages", '{"messages": [{"role": "user", "content": [{"type": "image"}]}]}',
     "a message has parts that are not text"),
])
def test_a_fault_in_a_row(format: str, text: str, told: str) -> None:
    with pytest.raises(Fault) as caught:
        convert(format, row(text))
    assert str(caught.value) == told


@pytest.mark.parametrize(("line", "told"), [
    (b"\xef\xbb\xbf{}", "starts with a byte order mark (BOM)"),
    (b"\xff\xfe{\0", "this is a UTF-16 file, UTF-8 is needed"),
    (b"PAR1....", "this is a parquet file, UTF-8 is needed"),
    (b'{"a": "\xe4"}', "not UTF-8, it looks like Latin-1 (Windows-1252)"),
    (b"[1]", "a JSON array, one object a line is needed"),
    (b'"a"', "not a JSON object"),
    (b'{"a": 1', "not JSON: the object has no end"),
    (b'{"a": 1, "a": 2}', "a key is there twice"),
    (b'{"a": NaN}', "NaN is not JSON"),
    (b"[" * 100_000, "nested too deep"),
    (b'{"a":' * 65 + b"1" + b"}" * 65, "nested too deep"),
    (b" " * (MOST_LINE_BYTES + 1), "longer than 4 MiB"),
])
def test_a_fault_in_a_line(line: bytes, told: str) -> None:
    with pytest.raises(Fault) as caught:
        parse(1, line)
    assert str(caught.value) == told


def test_a_number_of_a_million_digits_costs_nothing() -> None:
    assert parse(1, b'{"a": ' + b"9" * 1_000_000 + b"}").keys() == {"a"}


def test_half_a_character_is_refused() -> None:
    with pytest.raises(Fault, match="half a character"):
        spell(convert("text", row('{"text": "a \\ud800"}')))


JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=8),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(
                        st.sampled_from(["role", "content", "from", "value", "text", "type", "a"]), inner, max_size=4),
                    max_leaves=12)


@given(st.sampled_from(sorted(CONVERTERS)), st.dictionaries(
    st.sampled_from(["messages", "conversations", "instruction", "output", "input", "prompt", "completion", "text"]),
    JSON, max_size=8))
def test_any_object_is_a_row_or_a_fault(format: str, tree: dict[str, Any]) -> None:
    try:
        made = convert(format, parse(1, json.dumps(tree).encode()))
    except Fault:
        return
    if format == "text":
        assert made["text"].strip()
    else:
        assert made["messages"][-1]["role"] == "assistant"
        assert all(turn["content"].strip() for turn in made["messages"])


@given(st.binary(max_size=200))
def test_any_bytes_are_an_object_or_a_fault(line: bytes) -> None:
    try:
        assert isinstance(parse(1, line), dict)
    except Fault as fault:
        assert "\n" not in str(fault)
