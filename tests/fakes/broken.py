"""Broken datasets, one fault each, made by hand: what stands in the file, and where the fault is.

`python -m tests.fakes.broken` writes them to tests/golden/broken, with the words that the check has for each of them in
expected.json, to be read before they are committed.
"""
from __future__ import annotations

import gzip
import io
import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import zstandard

GOLDEN = Path(__file__).parents[1] / "golden" / "broken"
FACTS = (
    ("Which planet is closest to the sun?", "Mercury is closest; it circles the sun in eighty-eight days."),
    ("How is bread kept fresh for longer?", "Wrap the loaf in linen and keep it in a clay pot with a lid."),
    ("Name the river that flows through Dresden.", "The Elbe flows through Dresden on its way to Hamburg."),
    ("Why do leaves turn red in autumn?", "Trees stop making chlorophyll, and the other pigments begin to show."),
    ("What does a carburettor do?", "It mixes air with fuel before both reach the cylinders of an engine."),
    ("Explain compound interest to a child.", "Your coins earn coins, and next year those new coins earn coins too."),
    ("Where was the bicycle invented?", "Karl Drais rode the first one near Mannheim, in June of 1817."),
    ("Give advice for a first marathon.", "Start slowly, drink early, and wear nothing on the day that is new to you."),
    ("When should tomatoes be planted outside?", "Only after the last frost, which in most gardens means late May."),
    ("Who wrote The Magic Mountain?", "Thomas Mann wrote it, after a visit to a sanatorium in Davos."),
    ("Is it safe to refreeze meat?", "Only if it thawed in a refrigerator and never became warm."),
    ("How tall can a giraffe grow?", "A large bull reaches almost six metres from hoof to horn."),
)
Rows = list[Any]


@dataclass(frozen=True)
class Broken:
    """A file and its one fault. `line` 0: the file itself cannot be read as rows, and is refused with `code` "refused"."""

    name: str
    content: bytes
    line: int
    code: str


def chats() -> Rows:
    return [{"messages": [{"role": "user", "content": q}, {"role": "assistant", "content": a}]} for q, a in FACTS]


def alpaca() -> Rows:
    return [{"instruction": q, "input": "", "output": a} for q, a in FACTS]


def pairs() -> Rows:
    return [{"prompt": q, "completion": a} for q, a in FACTS]


def shared() -> Rows:
    return [{"conversations": [{"from": "human", "value": q}, {"from": "gpt", "value": a}]} for q, a in FACTS]


def texts() -> Rows:
    return [{"text": f"{q} {a}"} for q, a in FACTS]


def jsonl(rows: Rows) -> bytes:
    """A row that is bytes stands in the file as it is."""
    return b"".join((row if isinstance(row, bytes) else spelled(row)) + b"\n" for row in rows)


def spelled(row: Any) -> bytes:
    return json.dumps(row, ensure_ascii=False).encode()


def changed(rows: Rows, line: int, change: Callable[[Any], Any]) -> bytes:
    return jsonl([change(row) if n == line else row for n, row in enumerate(rows, 1)])


def put(rows: Rows, line: int, content: Any) -> bytes:
    return changed(rows, line, lambda _: content)


def cut_bytes(rows: Rows, line: int, change: Callable[[bytes], bytes]) -> bytes:
    return changed(rows, line, lambda row: change(spelled(row)))


def turns(*said: tuple[str, Any]) -> dict[str, Any]:
    return {"messages": [{"role": role, "content": content} for role, content in said]}


def with_answer(line: int, answer: Any) -> bytes:
    return changed(chats(), line, lambda row: turns(("user", row["messages"][0]["content"]), ("assistant", answer)))


def table(records: list[list[str]]) -> bytes:
    import csv

    out = io.StringIO(newline="")
    csv.writer(out, lineterminator="\n").writerows([["prompt", "completion"], *records])
    return out.getvalue().encode()


LINES: list[tuple[str, bytes, int]] = [                  # faults of a line: not even JSON
    ("trailing-comma", cut_bytes(chats(), 4, lambda b: b[:-1] + b",}"), 4),
    ("single-quotes", cut_bytes(pairs(), 3, lambda b: b.replace(b'"', b"'")), 3),
    ("python-none", cut_bytes(pairs(), 3, lambda b: b[:-1] + b', "note": None}'), 3),
    ("python-true", cut_bytes(pairs(), 9, lambda b: b[:-1] + b', "checked": True}'), 9),
    ("nan", cut_bytes(pairs(), 7, lambda b: b[:-1] + b', "score": NaN}'), 7),
    ("infinity", cut_bytes(pairs(), 7, lambda b: b[:-1] + b', "score": -Infinity}'), 7),
    ("missing-brace", cut_bytes(pairs(), 5, lambda b: b[:-1]), 5),
    ("missing-bracket", cut_bytes(chats(), 5, lambda b: b.replace(b"}]}", b"}}")), 5),
    ("missing-colon", cut_bytes(pairs(), 6, lambda b: b.replace(b'"prompt":', b'"prompt"')), 6),
    ("missing-comma", cut_bytes(pairs(), 6, lambda b: b.replace(b'", "completion"', b'" "completion"')), 6),
    ("unquoted-key", cut_bytes(pairs(), 8, lambda b: b.replace(b'"prompt"', b"prompt")), 8),
    ("curly-quotes", cut_bytes(pairs(), 8, lambda b: b.replace(b'"prompt"', "“prompt”".encode())), 8),
    ("line-break-in-text", cut_bytes(pairs(), 10, lambda b: b[:60]), 10),
    ("tab-in-text", cut_bytes(texts(), 2, lambda b: b.replace(b"kept fresh", b"kept\tfresh")), 2),
    ("bad-escape", cut_bytes(texts(), 2, lambda b: b.replace(b"kept fresh", b"kept \\fresh \\x")), 2),
    ("comment", put(texts(), 1, b"// made on a Monday"), 1),
    ("comment-behind", cut_bytes(texts(), 3, lambda b: b + b"  // checked"), 3),
    ("two-objects", cut_bytes(texts(), 4, lambda b: b + b" " + b), 4),
    ("comma-behind", cut_bytes(texts(), 4, lambda b: b + b","), 4),
    ("plain-text", put(texts(), 6, b"this is no JSON at all"), 6),
    ("csv-line", put(texts(), 6, b"question,answer"), 6),
    ("array-line", put(texts(), 6, ["a", "b"]), 6),
    ("string-line", put(texts(), 6, "only words"), 6),
    ("number-line", put(texts(), 6, 17), 6),
    ("null-line", put(texts(), 6, None), 6),
    ("double-key", cut_bytes(pairs(), 11, lambda b: b[:-1] + b', "prompt": "Another one?"}'), 11),
    ("double-key-inside", cut_bytes(chats(), 11, lambda b: b.replace(b'"role": "user"', b'"role": "user", "role": ""')), 11),
    ("double-key-spaced", cut_bytes(pairs(), 11, lambda b: b.replace(b'"prompt":', b'"prompt" : "x", "prompt":')), 11),
    ("too-deep", put(texts(), 7, b'{"text": "a", "more": ' + b"[" * 90 + b"]" * 90 + b"}"), 7),
    ("half-character", put(texts(), 7, b'{"text": "a smile: \\ud83d"}'), 7),
    ("latin-1", cut_bytes(texts(), 9, lambda b: b.replace(b"mean", "für".encode("latin-1"))), 9),
    ("windows-1252", cut_bytes(texts(), 9, lambda b: b.replace(b"mean", b"\x93mean\x94")), 9),
    ("cut-utf-8", cut_bytes(texts(), 9, lambda b: b[:-2] + "ä".encode()[:1] + b'"}'), 9),
    ("zero-bytes", put(texts(), 9, b"\0" * 40), 9),
    ("byte-order-mark", b"\xef\xbb\xbf" + jsonl(texts()), 1),
    ("utf-16", "".join(line + "\n" for line in map(json.dumps, texts())).encode("utf-16"), 1),
    ("zip", b"PK\x03\x04" + bytes(range(60)), 1),
    ("pretty-printed", "\n".join(json.dumps(row, indent=1) for row in texts()).encode(), 1),
]
ROWS: list[tuple[str, bytes, int]] = [                   # faults of a row: JSON, and yet not to be trained on
    ("empty-answer", with_answer(3, ""), 3),
    ("blank-answer", with_answer(3, " \n "), 3),
    ("null-answer", with_answer(3, None), 3),
    ("number-answer", with_answer(3, 42), 3),
    ("list-of-parts", with_answer(3, [{"type": "image_url", "image_url": "x"}]), 3),
    ("no-answer", put(chats(), 5, turns(("user", "Is anybody there?"))), 5),
    ("ends-with-user", put(chats(), 5, turns(("user", "Hello?"), ("assistant", "Good morning."), ("user", "Bye."))), 5),
    ("two-users", put(chats(), 5, turns(("user", "Hello?"), ("user", "Anybody?"), ("assistant", "Yes, I am here."))), 5),
    ("begins-with-assistant", put(chats(), 5, turns(("assistant", "Welcome."), ("user", "Hello."))), 5),
    ("late-system", put(chats(), 5, turns(("user", "Hello?"), ("system", "Be brief."), ("assistant", "Yes?"))), 5),
    ("unknown-role", put(chats(), 5, turns(("user", "Hello?"), ("tool", "{}"))), 5),
    ("no-role", put(chats(), 5, {"messages": [{"content": "Hello?"}]}), 5),
    ("no-content", put(chats(), 5, {"messages": [{"role": "user"}]}), 5),
    ("empty-conversation", put(chats(), 5, {"messages": []}), 5),
    ("conversation-as-text", put(chats(), 5, {"messages": "user: hello"}), 5),
    ("message-as-text", put(chats(), 5, {"messages": ["hello", "yes"]}), 5),
    ("other-format", put(chats(), 8, {"instruction": "Greet me.", "output": "Good morning to you."}), 8),
    ("misspelt-key", changed(chats(), 8, lambda row: {"mesages": row["messages"]}), 8),
    ("misspelt-output", changed(alpaca(), 8, lambda row: {"instruction": row["instruction"], "ouput": row["output"]}), 8),
    ("input-as-list", changed(alpaca(), 8, lambda row: {**row, "input": ["a"]}), 8),
    ("empty-instruction", changed(alpaca(), 2, lambda row: {**row, "instruction": ""}), 2),
    ("empty-completion", changed(pairs(), 2, lambda row: {**row, "completion": ""}), 2),
    ("mixed-prompt", changed(pairs(), 2, lambda row: {**row, "prompt": [{"role": "user", "content": "x"}]}), 2),
    ("sharegpt-role", put(shared(), 2, {"conversations": [{"from": "robot", "value": "beep"}]}), 2),
    ("sharegpt-empty", put(shared(), 2, {"conversations": []}), 2),
    ("empty-text", put(texts(), 12, {"text": ""}), 12),
    ("text-as-number", put(texts(), 12, {"text": 5}), 12),
    ("empty-object", put(texts(), 12, {}), 12),
]
LONG = "A first sentence stands here, a second one follows it at once, and then there is still "
DOUBTS: list[tuple[str, str, bytes, int]] = [            # what could be trained on, and should not
    ("duplicate", "duplicate", jsonl([*chats(), chats()[1]]), 13),
    ("duplicate-other-order", "duplicate", jsonl([*pairs(), {"completion": FACTS[3][1], "prompt": FACTS[3][0]}]), 13),
    ("contradiction", "contradiction", jsonl([*pairs(), {"prompt": FACTS[0][0], "completion": "Venus is closest."}]), 13),
    ("near-duplicate-case", "near-duplicate", jsonl([*texts(), {"text": texts()[4]["text"].upper()}]), 13),
    ("near-duplicate-word", "near-duplicate", jsonl([
        *texts(), {"text": "One " + " ".join(f"{a} {b}" for a, b in FACTS[2:6])},
        {"text": "Two " + " ".join(f"{a} {b}" for a, b in FACTS[2:6])}]), 14),
    ("near-contradiction", "near-contradiction", jsonl([
        *pairs(), {"prompt": FACTS[9][0].lower(), "completion": "Nobody knows that any more."}]), 13),
    ("chat-marker", "marker", with_answer(4, "The pigments show.<|im_end|>"), 4),
    ("llama-marker", "marker", put(texts(), 4, {"text": "[INST] Say hello. [/INST] Hello to you."}), 4),
    ("eos-marker", "marker", with_answer(4, "The pigments show.</s>"), 4),
    ("escaped-marker", "marker", put(texts(), 4, b'{"text": "All pigments begin to show.\\u003c|im_end|\\u003e"}'), 4),
    ("alpaca-marker", "marker", put(texts(), 4, {"text": "### Instruction:\nSay hello.\n### Response:\nHello to you."}), 4),
    ("cut-at-comma", "cut", with_answer(6, LONG + "more,"), 6),
    ("cut-at-word", "cut", with_answer(6, LONG + "more to say, because"), 6),
    ("cut-code", "fence", with_answer(6, "Write this:\n```python\nprint('hello')\n"), 6),
    ("placeholder", "hollow", with_answer(6, "TO" "DO"), 6),
    ("not-available", "hollow", with_answer(6, "N/A"), 6),
    ("echo", "echo", with_answer(6, FACTS[5][0]), 6),
    ("excuse", "refusal", with_answer(6, "As an AI language model, I cannot help with that."), 6),
    ("garbled", "garbled", with_answer(6, "Der Ã¤lteste Baum steht im Garten."), 6),
    ("lost-character", "lost", with_answer(6, "Der \ufffdlteste Baum steht im Garten."), 6),
    ("control-character", "control", with_answer(6, "A bell\u0007 rings in here."), 6),
    ("rare-class", "rare-class", jsonl([
        {"prompt": f"Letter {n * 7919 % 10007} from {FACTS[n % 12][0][:9]}", "completion": name}
        for n, name in enumerate(["spam", "ham"] * 120 + ["sapm"])]), 241),
]
FILES: list[Broken] = [                                  # faults of other kinds of files
    Broken("empty.jsonl", b"", 0, "refused"),
    Broken("blank.jsonl", b"\n \n\n", 0, "refused"),
    Broken("one-row.jsonl", jsonl(texts()[:1]), 0, "refused"),
    Broken("all-the-same.jsonl", jsonl(texts()[:1] * 5), 0, "refused"),
    Broken("unknown-keys.jsonl", jsonl([{"frage": q, "antwort": a} for q, a in FACTS]), 0, "refused"),
    Broken("cut.jsonl.gz", gzip.compress(jsonl(texts()), mtime=0)[:-20], 0, "refused"),
    Broken("cut.jsonl.zst", zstandard.compress(jsonl(texts()))[:-9], 0, "refused"),
    Broken("empty-text.jsonl.gz", gzip.compress(put(texts(), 12, {"text": ""}), mtime=0), 12, "row"),
    Broken("number.jsonl.zst", zstandard.compress(put(texts(), 11, {"text": 1})), 11, "row"),
    Broken("not-closed.json", json.dumps(texts(), indent=0).encode()[:-2], 37, "row"),
    Broken("row-in-array.json", json.dumps([*texts()[:3], {"text": 3}, *texts()[4:]], indent=0).encode(), 12, "row"),
    Broken("comma-in-array.json", json.dumps(texts(), indent=0).encode().replace(b"},\n", b"},\n,\n", 1), 5, "row"),
    Broken("comma-in-row.json", json.dumps(texts(), indent=0).encode().replace(b'."\n}', b'.",\n}', 1), 4, "row"),
    Broken("behind-array.json", json.dumps(texts(), indent=0).encode() + b"\n{}\n", 38, "row"),
    Broken("fields.csv", table([list(f) for f in FACTS]) + b"only one field\n", 14, "row"),
    Broken("quote.csv", table([list(f) for f in FACTS]) + b'a question,"an answer without end\n', 14, "row"),
    Broken("answer.csv", table([*map(list, FACTS[:4]), ["A question?", " "], *map(list, FACTS[5:])]), 6, "row"),
    Broken("header.csv", table([list(f) for f in FACTS]).replace(b"completion", b"prompt", 1), 1, "row"),
    Broken("latin-1.csv", table([list(f) for f in FACTS]) + "für,später\n".encode("latin-1"), 14, "row"),
]


def broken() -> list[Broken]:
    made = [Broken(f"{name}.jsonl", content, line, "row") for name, content, line in (*LINES, *ROWS)]
    return [*made, *(Broken(f"{name}.jsonl", content, line, code) for name, code, content, line in DOUBTS), *FILES]


def told(path: Path) -> list[dict[str, Any]]:
    """What the check says about a file, without what is only noted; a refusal as one finding of the whole file."""
    from orchestrator.dataset.check import check
    from orchestrator.errors import BadInput

    try:
        found = check(path).tally
    except BadInput as refusal:
        place = str(refusal).removeprefix(f"{path.name}:").split(":")
        line = int(place[0]) if place[0].isdigit() else 0
        return [{"line": line, "code": "row" if line else "refused", "what": str(refusal), "mend": refusal.hint}]
    return [{"line": one.line, "code": one.code, "what": str(one), "mend": one.mend}
            for one in found.kept if one.weight != "note"]


def main() -> None:
    GOLDEN.mkdir(exist_ok=True)
    for old in GOLDEN.iterdir():
        old.unlink()
    for one in broken():
        (GOLDEN / one.name).write_bytes(one.content)
    expected = {one.name: told(GOLDEN / one.name) for one in broken()}
    (GOLDEN / "expected.json").write_text(json.dumps(expected, indent=1, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main()
