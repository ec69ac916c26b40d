"""The rows: opened in memory, checked whole, and turned into ids and labels of our own making.

No row is ever written, printed, or named in an error. Loss falls on the assistant's turns only, and that is
decided here and not by the trainer's defaults. The header's canary is never trained on.
"""
from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from remote_payload.faults import BadRows, BadTemplate, DamagedSeal, NoRowFits

SCHEMA = "sealtune/rows/1"
ROLES = ("system", "user", "assistant", "tool")
IGNORED = -100                       # the label that no loss falls on
Row = dict[str, Any]
Tokenised = dict[str, list[int]]


@dataclass(frozen=True)
class Rows:
    """`kind` is messages or text; both lists in the order of the file."""

    kind: str
    train: list[Row]
    held_out: list[Row]


def read_rows(packed: bytes, train: int, held_out: int) -> Rows:
    """Unpacks and checks every row against header and spec before anything heavy is imported. Raises BadRows."""
    lines = iter(_lines(packed))
    try:
        header = json.loads(next(lines))
        if header["schema"] != SCHEMA or (header["train"], header["held_out"]) != (train, held_out):
            raise BadRows
        kind = header["kind"]
        split: dict[str, list[Row]] = {"train": [], "held_out": []}
        for line in lines:
            row = json.loads(line)
            _check(kind, row)
            split[row["split"]].append(row)
    except (ValueError, KeyError, TypeError, StopIteration):
        raise BadRows from None
    if (len(split["train"]), len(split["held_out"])) != (train, held_out) or not split["train"]:
        raise BadRows
    if _said(split["train"]) & _said(split["held_out"]):         # never trained on, whoever drew the line
        raise BadRows
    return Rows(kind, split["train"], split["held_out"])


def _lines(packed: bytes) -> Iterable[str]:
    import zstandard
    try:
        with zstandard.ZstdDecompressor().stream_reader(io.BytesIO(packed), read_across_frames=True) as stream:
            plain = stream.read()
        return [line for line in plain.decode("utf-8").split("\n") if line]
    except (zstandard.ZstdError, UnicodeDecodeError):
        raise DamagedSeal from None


def _said(part: Iterable[Row]) -> set[bytes]:
    """What each row says, as digests."""
    texts = (json.dumps(row.get("messages", row.get("text")), sort_keys=True) for row in part)
    return {hashlib.sha256(text.encode()).digest() for text in texts}


def _check(kind: str, row: Row) -> None:
    if kind == "text":
        good = isinstance(row["text"], str) and bool(row["text"])
    elif kind == "messages":
        turns = row["messages"]
        good = bool(turns) and all(t["role"] in ROLES and isinstance(t["content"], str) for t in turns)
        good = good and turns[-1]["role"] == "assistant" and bool(turns[-1]["content"])
    else:
        good = False
    if not good:
        raise BadRows


def tokenise(rows: Rows, part: Sequence[Row], tokenizer: Any, max_length: int) -> list[Tokenised]:
    """Ids and labels, cut at `max_length` tokens; a row with nothing left to learn from is left out.

    Raises NoRowFits when none is left, BadTemplate when a chat template hides where an answer begins."""
    whole = [_text(row["text"], tokenizer) if rows.kind == "text" else _chat(row["messages"], tokenizer)
             for row in part]
    cut = [{name: ids[:max_length] for name, ids in row.items()} for row in whole]
    kept = [row for row in cut if any(label != IGNORED for label in row["labels"][1:])]
    if part and not kept:
        raise NoRowFits
    return kept


def _text(text: str, tokenizer: Any) -> Tokenised:
    ids = list(tokenizer(text)["input_ids"])
    if tokenizer.eos_token_id is not None and ids[-1:] != [tokenizer.eos_token_id]:
        ids.append(tokenizer.eos_token_id)
    return {"input_ids": ids, "labels": list(ids)}


def _chat(turns: list[dict[str, str]], tokenizer: Any) -> Tokenised:
    if "{% generation" in str(tokenizer.chat_template):
        made = tokenizer.apply_chat_template(turns, return_dict=True, return_assistant_tokens_mask=True)
        mask = made["assistant_masks"]
        if not any(mask):
            raise BadTemplate
        ids = list(made["input_ids"])
        return {"input_ids": ids, "labels": [i if m else IGNORED for i, m in zip(ids, mask, strict=True)]}
    return _chat_by_prefix(turns, tokenizer)


def _chat_by_prefix(turns: list[dict[str, str]], tokenizer: Any) -> Tokenised:
    """For templates without generation marks: an answer is what rendering it adds to its prompt."""
    ids = _render(turns, tokenizer, prompt=False)
    labels = [IGNORED] * len(ids)
    for place, turn in enumerate(turns):
        if turn["role"] != "assistant":
            continue
        before = _render(turns[:place], tokenizer, prompt=True) if place else []
        after = _render(turns[:place + 1], tokenizer, prompt=False)
        if ids[:len(after)] != after or after[:len(before)] != before:
            raise BadTemplate
        labels[len(before):len(after)] = after[len(before):]
    return {"input_ids": ids, "labels": labels}


def prompts(part: Sequence[Row], tokenizer: Any) -> list[list[int]]:
    """The ids of everything before the last answer, ready for the model to go on."""
    return [_render(row["messages"][:-1], tokenizer, prompt=True) for row in part]


def _render(turns: list[dict[str, str]], tokenizer: Any, prompt: bool) -> list[int]:
    if not tokenizer.chat_template:
        raise BadTemplate
    return list(tokenizer.apply_chat_template(turns, return_dict=True, add_generation_prompt=prompt)["input_ids"])
