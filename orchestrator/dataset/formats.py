"""Every format of the house, turned into two kinds of rows: {"messages": [{role, content}…]} or {"text": …}.

Roles become system, user and assistant; a conversation ends with an answer that says something, and turns
alternate, as chat templates demand. What a template would refuse on rented time is refused here.
"""
from __future__ import annotations

from collections.abc import Callable
from typing import Any

import orjson

from .faults import Fault, Path

Row = dict[str, Any]
TEXT, EMPTY = "write it in double quotes", "write what is missing, or leave the row out"
FORMATS = {
    "messages": ("messages",),
    "sharegpt": ("conversations",),
    "alpaca": ("instruction", "output"),
    "prompt_completion": ("prompt", "completion"),
    "dolly": ("instruction", "response"),
    "question_answer": ("question", "answer"),
    "text": ("text",),
}
OPTIONAL = {"alpaca": ("input", "system"), "dolly": ("context", "system"), "question_answer": ("context", "system"),
            "sharegpt": ("system",)}
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
            raise Fault(f"no {key!r}" + (f", this looks like {other} and not like {format}" if other else ""),
                        "bring all rows into one format" if other else f"a row of {format} has {', '.join(FORMATS[format])}")
    return CONVERTERS[format](row)


def spell(row: Row) -> bytes:
    """The canonical bytes of a converted row: what is hashed and what is written. The same as document.canonical's."""
    try:
        return orjson.dumps(row, option=orjson.OPT_SORT_KEYS)
    except TypeError:
        raise Fault("holds half a character (a lone surrogate)",
                    "write the whole character: \\ud83d needs its second half") from None


def _plain(row: Row) -> Row:
    return {"text": _said(row["text"], "'text'", "text")}


def _messages(row: Row) -> Row:
    return {"messages": _conversation(row["messages"], "role", "content", ("messages",))}


def _sharegpt(row: Row) -> Row:
    turns = _conversation(row["conversations"], "from", "value", ("conversations",))
    return {"messages": _system(row) + turns if turns[0]["role"] != "system" else turns}


def _asked(ask: str, more: str, answer: str) -> Callable[[Row], Row]:
    """A question under one key, perhaps what it is about under a second, the answer under a third."""
    def convert(row: Row) -> Row:
        prompt, about = _said(row[ask], repr(ask), ask), row.get(more)
        if about is not None and not isinstance(about, str):
            raise Fault(f"{more!r} is {_type(about)}, text is needed", TEXT, (more,))
        if about and not about.isspace():
            prompt = f"{prompt}\n\n{about}"
        said = _said(row[answer], repr(answer), answer)
        return {"messages": [*_system(row), _turn("user", prompt), _turn("assistant", said)]}

    return convert


def _prompt_completion(row: Row) -> Row:
    prompt, completion = row["prompt"], row["completion"]
    if isinstance(prompt, list) or isinstance(completion, list):
        if not (isinstance(prompt, list) and isinstance(completion, list)):
            raise Fault("'prompt' and 'completion' must both be text, or both lists of messages", "write both alike",
                        ("completion",))
        if not completion:
            raise Fault("'completion' is empty", EMPTY, ("completion",))
        return {"messages": _conversation(prompt + completion, "role", "content", ("prompt",))}
    return {"messages": [_turn("user", _said(prompt, "'prompt'", "prompt")),
                         _turn("assistant", _said(completion, "'completion'", "completion"))]}


CONVERTERS: dict[str, Callable[[Row], Row]] = {
    "text": _plain, "messages": _messages, "sharegpt": _sharegpt, "prompt_completion": _prompt_completion,
    "alpaca": _asked("instruction", "input", "output"), "dolly": _asked("instruction", "context", "response"),
    "question_answer": _asked("question", "context", "answer")}


def _conversation(turns: Any, role_key: str, text_key: str, at: Path) -> list[dict[str, str]]:
    if not isinstance(turns, list):
        raise Fault(f"the conversation is {_type(turns)}, a list is needed", f'[{{"{role_key}": "user", …}}, …]', at)
    if not turns:
        raise Fault("the conversation is empty", "write a question and its answer, or leave the row out", at)
    found = [_one(n, turn, role_key, text_key, at) for n, turn in enumerate(turns)]
    talk = found[1:] if found[0]["role"] == "system" else found
    for n, turn in enumerate(talk):
        expected = "assistant" if n % 2 else "user"
        if turn["role"] != expected:
            place = n + len(found) - len(talk)
            raise Fault(f"message {place + 1} is of the {turn['role']}, one of the {expected} is due",
                        "questions and answers take turns; one of the system stands first", (*at, place, role_key))
    if len(talk) % 2 or not talk:
        raise Fault("the conversation does not end with an answer of the assistant",
                    "write the answer, or leave the last question out", (*at, len(found) - 1))
    return found


def _one(number: int, turn: Any, role_key: str, text_key: str, at: Path) -> dict[str, str]:
    if not isinstance(turn, dict):
        raise Fault(f"message {number + 1} is {_type(turn)}, an object is needed", f'{{"{role_key}": …, "{text_key}": …}}',
                    (*at, number))
    for key in (role_key, text_key):
        if key not in turn:
            raise Fault(f"message {number + 1} has no {key!r}", f"every message has {role_key!r} and {text_key!r}",
                        (*at, number))
    role = turn[role_key]
    if type(role) is not str or role.lower() not in ROLES:
        raise Fault(f"message {number + 1} has a role that is not known (system, user, assistant)",
                    "name one of the three; tools are not trained on", (*at, number, role_key))
    content = turn[text_key]
    if type(content) is not str or not content or content.isspace():
        content = _said(_parts(content, (*at, number, text_key)), f"message {number + 1}", *at, number, text_key)
    return {"role": ROLES[role.lower()], "content": content}


def _parts(content: Any, at: Path) -> Any:
    """Content may be a list of text parts; anything but text cannot be trained on here."""
    if not isinstance(content, list):
        return content
    if not all(isinstance(p, dict) and p.get("type") == "text" and isinstance(p.get("text"), str) for p in content):
        raise Fault("a message has parts that are not text", "leave out images and tool calls, or the row", at)
    return "".join(p["text"] for p in content)


def _system(row: Row) -> list[dict[str, str]]:
    system = row.get("system")
    if system is None or system == "":
        return []
    return [_turn("system", _said(system, "'system'", "system"))]


def _turn(role: str, content: str) -> dict[str, str]:
    return {"role": role, "content": content}


def _said(value: Any, name: str, *path: str | int) -> str:
    if not isinstance(value, str):
        raise Fault(f"{name} is {_type(value)}, text is needed", TEXT, path)
    if not value or value.isspace():
        raise Fault(f"{name} is empty", EMPTY, path)
    return value


def _type(value: Any) -> str:
    """The JSON kind of a value, in words."""
    if value is None:
        return "null"
    return {bool: "true or false", list: "a list", dict: "an object", str: "text"}.get(type(value), "a number")
