"""JSON lines, in blocks: a fast reading for good lines, and a slow one that finds the words for a bad one.

Both take the same lines. Knows nothing about formats.
"""
from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Iterable, Iterator
from typing import Any

import orjson

from ..domain.document import must_be_shallow
from .faults import Fault

MOST_LINE_BYTES = 4 * 1024 * 1024
MOST_DEPTH = 64
MAGIC = ((b"PK\x03\x04", "zip"), (b"PAR1", "parquet"), (b"\x1f\x8b", "gzip"), (b"\x28\xb5\x2f\xfd", "zstd"),
         (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"), (b"BZh", "bzip2"), (b"\xfd7zXZ", "xz"))
LATIN = "iconv -f WINDOWS-1252 -t UTF-8 FILE > NEW turns it into UTF-8"
ONE_A_LINE = "one JSON object a line"
Row = dict[str, Any]
Read = tuple[int, Row | Fault, bytes]    # line, what stands there, its bytes


class Number:
    """A JSON number. Its value is never needed, so it is never made: no float, no integer of a million digits."""

    def __init__(self, text: str) -> None: ...


def read(blocks: Iterable[bytes], wanted: Container[int] | None = None,
         peek: Callable[[bytes], None] | None = None) -> Iterator[Read]:
    """Every line that is not blank, or those whose numbers are `wanted`. `peek` is shown each block before its lines."""
    number = 0
    for block in whole_lines(blocks):
        if peek:
            peek(block)
        strange = may_space_keys(block)
        for line in block.split(b"\n"):
            number += 1
            if not line or (wanted is not None and number not in wanted) or line.isspace():
                continue
            yield number, _read(number, line, strange), line


def whole_lines(blocks: Iterable[bytes]) -> Iterator[bytes]:
    """The same bytes, cut at ends of lines, these left out. Of a line over the limit only its beginning comes."""
    rest, skipping = b"", False
    for block in blocks:
        if skipping:
            end = block.find(b"\n")
            if end < 0:
                continue
            block, skipping = block[end:], False
        cut = block.rfind(b"\n")
        if cut >= 0:
            yield rest + block[:cut]
            rest = block[cut + 1:]
        else:
            rest += block
            if len(rest) > MOST_LINE_BYTES:
                rest, skipping = rest[:MOST_LINE_BYTES + 1], True
    if rest:
        yield rest


def may_space_keys(block: bytes) -> bool:
    """Keys may stand apart from their colons there."""
    return (b"\\u0022" in block or b'" :' in block or b'"  ' in block
            or (b"\t" in block and (b'"\t' in block or b'" \t' in block))
            or (b"\r" in block and (b'"\r' in block or b'" \r' in block)))


def _read(number: int, line: bytes, strange: bool) -> Row | Fault:
    """Read fast, the line has as many keys as the object: each `":` of the one is there in the other, those inside of text
    too. Fewer in the object: a key stood there twice. `strange`: they cannot be counted so."""
    if len(line) <= MOST_LINE_BYTES and not strange and line.count(b"{") + line.count(b"[") <= MOST_DEPTH:
        try:
            row = orjson.loads(line)
            if type(row) is dict and line.count(b'":') == orjson.dumps(row).count(b'":'):
                return row
        except (orjson.JSONDecodeError, TypeError):
            pass
    try:
        return parse(number, line)
    except Fault as fault:
        return fault


# ---- the slow reading -------------------------------------------------------------------------------------


def parse(number: int, line: bytes) -> Row:
    """The object on a line. Fault for anything else, with its column."""
    if len(line) > MOST_LINE_BYTES:
        raise Fault(f"longer than {MOST_LINE_BYTES // 1024 // 1024} MiB", "cut the row into several; no model reads so much")
    text = _text(number, line)
    try:
        must_be_shallow(line, MOST_DEPTH)
    except ValueError as problem:
        raise Fault(str(problem), "leave out keys that no format has") from None
    try:
        tree = json.loads(text, object_pairs_hook=_no_twins, parse_constant=_no_constant,
                          parse_int=Number, parse_float=Number)
    except json.JSONDecodeError as problem:
        raise _not_json(text, problem) from None
    except Fault as fault:
        raise _placed(text, fault) from None
    if isinstance(tree, list):
        raise Fault("a JSON array, one object a line is needed", "write the rows themselves, one a line")
    if not isinstance(tree, dict):
        raise Fault("not a JSON object", 'every row is an object: {"…": "…"}')
    if _depth(tree, MOST_DEPTH + 1) > MOST_DEPTH:
        raise Fault("nested too deep", "leave out keys that no format has")
    return tree


def _text(number: int, line: bytes) -> str:
    if number == 1:
        if line.startswith(b"\xef\xbb\xbf"):
            raise Fault("starts with a byte order mark (BOM)", "save the file as UTF-8 without it: tail -c +4 FILE > NEW",
                        column=1)
        for magic, name in MAGIC:
            if line.startswith(magic):
                mend = "iconv -f UTF-16 -t UTF-8 FILE > NEW turns it into UTF-8" if name == "UTF-16" else "unpack it first"
                raise Fault(f"this is a {name} file, UTF-8 is needed", mend, column=1)
    try:
        return line.decode("utf-8")
    except UnicodeDecodeError as problem:
        column = len(line[:problem.start].decode("utf-8")) + 1
        if line[problem.start:problem.start + 1] == b"\x00" or line.count(b"\0") > len(line) // 4:
            raise Fault("not UTF-8, it looks like UTF-16", "save the file as UTF-8", column=column) from None
        looks = ", it looks like Latin-1 (Windows-1252)" if _is_latin(line, problem.start) else ""
        raise Fault(f"not UTF-8{looks}", LATIN if looks else "save the file as UTF-8", column=column) from None


def _is_latin(line: bytes, place: int) -> bool:
    """A lone byte of a letter or a sign, between bytes of ASCII."""
    around = line[max(0, place - 1):place] + line[place + 1:place + 2]
    return line[place] >= 0x80 and all(byte < 0x80 for byte in around)


CAUSES: tuple[tuple[str, str, str], ...] = (         # what stands at the fault, what that is, how to mend it
    (r"'", "text in single quotes", 'JSON has double quotes; python: json.dumps(row), not str(row)'),
    (r"(None|True|False)\b", "a word of Python", "JSON says null, true, false; python: json.dumps(row), not str(row)"),
    (r"(NaN|-?Infinity)\b", "a number that JSON does not have", "write null, or leave the key out"),
    (r"[}\]]", "a comma or a value too much or too few before this bracket", "take out the comma, or write the value"),
    (r"//|/\*|#", "a comment", "JSON has no comments"),
    (r"[\u201c\u201d\u201e\u2018\u2019]", "curly quotes", 'write straight ones: "'),
    (r"\{", "an object where none can be", "one object a line; a comma between objects in a list"),
    (r'"', "a comma or a colon is missing before this text", "write it"),
    (r"[A-Za-z_]", "a word without quotes", "keys and text stand in double quotes"),
)


def _not_json(text: str, problem: json.JSONDecodeError) -> Fault:
    message, place = problem.msg, problem.pos
    rest = text[place:]
    if message.startswith("Extra data"):
        what, mend = ("more than one object on the line", ONE_A_LINE) if rest.startswith(("{", ",")) else (
            "something stands behind the object", ONE_A_LINE)
    elif message.startswith("Unterminated string"):
        what, mend = "text without an end: a line break in it, or cut off", "a line break inside text is written \\n"
    elif message.startswith("Invalid control character"):
        what, mend = "a control character in text", "a tab is written \\t, a line break \\n, others \\u00…"
    elif message.startswith("Invalid \\") or "\\u" in message:
        what, mend = "a backslash that begins no escape", "a backslash itself is written \\\\"
    elif not rest.strip():
        what, mend = "the object has no end", "one whole object a line; for objects over several lines: jq -c . FILE > NEW"
    elif message.startswith("Illegal trailing comma"):
        what, mend = "a comma too much", "take it out"
    else:
        what, mend = next(((what, mend) for here, what, mend in CAUSES if re.match(here, rest)),
                          ("something else than JSON", ONE_A_LINE))
    return Fault(f"not JSON: {what}", mend, column=place + 1)


def _no_twins(pairs: list[tuple[str, Any]]) -> Row:
    tree = dict(pairs)
    if len(tree) != len(pairs):
        seen: set[str] = set()
        twin = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
        raise Fault("a key is there twice", "keep the one that is meant", path=(twin,))
    return tree


def _placed(text: str, fault: Fault) -> Fault:
    """The column of the second one of a key; of the word that is no JSON."""
    if fault.path:
        again = [m.start() for m in re.finditer(re.escape(json.dumps(fault.path[0], ensure_ascii=False)) + r"\s*:", text)]
        return Fault(str(fault), fault.mend, column=again[1] + 1 if len(again) > 1 else 0)
    word = str(fault).split(" ", 1)[0]
    return Fault(str(fault), fault.mend, column=text.find(word) + 1)


def _no_constant(text: str) -> Any:
    raise Fault(f"{text} is not JSON", "write null, or leave the key out")


def _depth(tree: Any, most: int) -> int:
    """How deep the tree is; counting stops at `most`."""
    if most <= 0 or not isinstance(tree, dict | list):
        return 0
    parts = tree.values() if isinstance(tree, dict) else tree
    return 1 + max((_depth(part, most - 1) for part in parts), default=0)
