"""Every format of the house, turned into two kinds of rows: {"messages": [{role, content}…]} or {"text": …}.

Roles become system, user and assistant; a conversation ends with an answer that says something, and turns
alternate, as chat templates demand. What a template would refuse on rented time is refused here.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ..domain.document import canonical
from .lines import Fault

Row = dict[str, Any]
FORMATS = {
    "messages": ("messages",),
    "sharegpt": ("conversations",),
    "alpaca": ("instruction", "output"),
    "prompt_completion": ("prompt", "completion"),
    "text": ("text",),
}
OPTIONAL = {"alpaca": ("input", "system"), "sharegpt": ("system",)}
ROLES = {"system": "system", "developer": "system", "user": "user", "human": "user", "assistant": "assistant",
         "gpt": "assistant", "model": "assistant", "bot": "assistant", "chatgpt": "assistant"}


def kind_of(format: str) -> str:
    return "text" if format == "text" else "messages"


def detect(row: Row) -> str | None:
    """The format whose keys this row has; None where none fits."""
    return next((name for name, keys in FORMATS.items() if all(key in row for key in keys)), None)


def known_formats() -> str:
    return "; ".join(f"{name}: {', '.join(keys)}" for name, keys in FORMATS.items())


def further_keys(format: str, row: Row) -> int:
    """How many keys of the row are not looked at."""
    return len(row.keys() - set(FORMATS[format]) - set(OPTIONAL.get(format, ())))


def convert(format: str, row: Row) -> Row:
    """The row as the trainer reads it, without its split. Fault names a key or a turn, never what it says."""
    for key in FORMATS[format]:
        if key not in row:
            other = detect(row)
            raise Fault(f"no {key!r}" + (f", this looks like {other} and not like {format}" if other else ""))
    return CONVERTERS[format](row)


def spell(row: Row) -> bytes:
    """The canonical bytes of a converted row: what is hashed and what is written."""
    try:
        return canonical(row)
    except UnicodeEncodeError:
        raise Fault("holds half a character (a lone surrogate)") from None


def _plain(row: Row) -> Row:
    return {"text": _said(row["text"], "'text'")}


def _messages(row: Row) -> Row:
    return {"messages": _conversation(row["messages"], "role", "content")}


def _sharegpt(row: Row) -> Row:
    turns = _conversation(row["conversations"], "from", "value")
    return {"messages": _system(row) + turns if turns[0]["role"] != "system" else turns}


def _alpaca(row: Row) -> Row:
    prompt, more = _said(row["instruction"], "'instruction'"), row.get("input")
    if more is not None and not isinstance(more, str):
        raise Fault(f"'input' is {_type(more)}, text is needed")
    if more and more.strip():
        prompt = f"{prompt}\n\n{more}"
    return {"messages": [*_system(row), _turn("user", prompt), _turn("assistant", _said(row["output"], "'output'"))]}


def _prompt_completion(row: Row) -> Row:
    prompt, completion = row["prompt"], row["completion"]
    if isinstance(prompt, list) or isinstance(completion, list):
        if not (isinstance(prompt, list) and isinstance(completion, list)):
            raise Fault("'prompt' and 'completion' must both be text, or both lists of messages")
        if not completion:
            raise Fault("'completion' is empty")
        return {"messages": _conversation(prompt + completion, "role", "content")}
    return {"messages": [_turn("user", _said(prompt, "'prompt'")),
                         _turn("assistant", _said(completion, "'completion'"))]}


CONVERTERS: dict[str, Callable[[Row], Row]] = {
    "text": _plain, "messages": _messages, "sharegpt": _sharegpt, "alpaca": _alpaca,
    "prompt_completion": _prompt_completion}


def _conversation(turns: Any, role_key: str, text_key: str) -> list[dict[str, str]]:
    if not isinstance(turns, list):
        raise Fault(f"the conversation is {_type(turns)}, a list is needed")
    if not turns:
        raise Fault("the conversation is empty")
    found = [_one(n, turn, role_key, text_key) for n, turn in enumerate(turns, 1)]
    talk = found[1:] if found[0]["role"] == "system" else found
    for n, turn in enumerate(talk):
        expected = "assistant" if n % 2 else "user"
        if turn["role"] != expected:
            place = n + 1 + len(found) - len(talk)
            raise Fault(f"message {place} is of the {turn['role']}, one of the {expected} is due")
    if len(talk) % 2 or not talk:
        raise Fault("the conversation does not end with an answer of the assistant")
    return found


def _one(number: int, turn: Any, role_key: str, text_key: str) -> dict[str, str]:
    if not isinstance(turn, dict):
        raise Fault(f"message {number} is {_type(turn)}, an object is needed")
    for key in (role_key, text_key):
        if key not in turn:
            raise Fault(f"message {number} has no {key!r}")
    role = turn[role_key]
    if not isinstance(role, str) or role.lower() not in ROLES:
        raise Fault(f"message {number} has a role that is not known (system, user, assistant)")
    return _turn(ROLES[role.lower()], _said(_parts(turn[text_key]), f"message {number}"))


def _parts(content: Any) -> Any:
    """Content may be a list of text parts; anything but text cannot be trained on here."""
    if not isinstance(content, list):
        return content
    if not all(isinstance(p, dict) and p.get("type") == "text" and isinstance(p.get("text"), str) for p in content):
        raise Fault("a message has parts that are not text")
    return "".join(p["text"] for p in content)


def _system(row: Row) -> list[dict[str, str]]:
    system = row.get("system")
    if system is None or system == "":
        return []
    return [_turn("system", _said(system, "'system'"))]


def _turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _said(value: Any, name: str) -> str:
    if not isinstance(value, str):
        raise Fault(f"{name} is {_type(value)}, text is needed")
    if not value.strip():
        raise Fault(f"{name} is empty")
    return value


def _type(value: Any) -> str:
    """The JSON kind of a value, in words."""
    if value is None:
        return "null"
    return {bool: "true or false", list: "a list", dict: "an object", str: "text"}.get(type(value), "a number")
