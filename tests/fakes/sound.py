"""Sound datasets in the styles of public ones, made from a seed: nothing is wrong with them, and a check that finds
something is wrong itself. The sentences are invented; the shapes, keys, languages and habits are what is met in the wild.
"""
from __future__ import annotations

import csv
import gzip
import io
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import zstandard

Row = dict[str, Any]
BANKS: dict[str, list[list[str]]] = json.loads((Path(__file__).parents[1] / "golden" / "sentences.json").read_text())


class Writer:
    """Sentences of a language, each text of its own."""

    def __init__(self, seed: int, language: str = "en") -> None:
        self.chance = random.Random(seed)
        self._bank = BANKS[language]
        self._stop = "。" if language in ("zh", "ja") else "."
        self._order = (0, 2, 3, 1) if language in ("ja", "ko") else (0, 1, 2, 3)
        self._glue = "" if language in ("zh", "ja") else " "
        self._number = 0

    def sentence(self, end: str = "") -> str:
        words = [self.chance.choice(part) for part in self._bank]
        text = self._glue.join(words[n] for n in self._order)
        return text[0].upper() + text[1:] + (end or self._stop)

    def text(self, least: int, most: int) -> str:
        return self._glue.join(self.sentence() for _ in range(self.chance.randint(least, most)))

    def ask(self) -> str:
        """A question that nobody asked before."""
        self._number += 1
        return f"{self.sentence('?')} ({self._number})"

    def rows(self, count: int, make: Callable[[], Row]) -> list[Row]:
        return [make() for _ in range(count)]


def chat(w: Writer, turns: int, system: str = "") -> list[Row]:
    said = [{"role": "system", "content": system}] if system else []
    for _ in range(turns):
        said += [{"role": "user", "content": w.ask()}, {"role": "assistant", "content": w.text(2, 5)}]
    return said


def jsonl(rows: list[Row], ascii: bool = False) -> bytes:
    return "".join(json.dumps(row, ensure_ascii=ascii) + "\n" for row in rows).encode()


def alpaca(w: Writer) -> Row:
    return {"instruction": w.ask(), "input": w.text(1, 2) if w.chance.random() < 0.4 else "", "output": w.text(2, 6)}


def dolly(w: Writer) -> Row:
    kinds = ("open_qa", "closed_qa", "summarization", "brainstorming", "classification")
    return {"instruction": w.ask(), "context": w.text(2, 4) if w.chance.random() < 0.5 else "", "response": w.text(2, 5),
            "category": w.chance.choice(kinds)}


def sharegpt(w: Writer) -> Row:
    turns = []
    for _ in range(w.chance.randint(1, 4)):
        turns += [{"from": "human", "value": w.ask()}, {"from": "gpt", "value": w.text(2, 8)}]
    return {"id": f"x{w.chance.randrange(10**9)}_0", "conversations": turns}


def code(w: Writer) -> Row:
    name, n = f"step_{w.chance.randrange(10**6)}", w.chance.randrange(1000)
    body = f'def {name}(x: int) -> dict[str, int]:\n    """{w.sentence()}"""\n    return {{"total": x + {n}}}\n'
    return {"prompt": f"Write `{name}` that adds {n}: {w.ask()}", "completion": f"```python\n{body}```\n\n{w.text(1, 3)}"}


def sql(w: Writer) -> Row:
    table, limit = f"orders_{w.chance.randrange(10**5)}", w.chance.randrange(10**4)
    return {"question": f"Which rows of {table} are above {limit}? {w.sentence()}",
            "context": f"CREATE TABLE {table} (id INT, total INT)",
            "answer": f"SELECT id FROM {table} WHERE total > {limit} AND id <> 7"}


def sums(w: Writer) -> Row:
    a, b, sign = w.chance.randrange(10**5), w.chance.randrange(10**5), w.chance.choice("+-*")
    return {"prompt": f"What is {a} {sign} {b}?", "completion": str(eval(f"{a} {sign} {b}"))}


def story_sums(w: Writer) -> Row:
    a, b = w.chance.randrange(2, 900), w.chance.randrange(2, 900)
    return {"question": f"{w.sentence()} There are {a} of them in the morning and {b} more at night. How many are there?",
            "answer": f"In the morning there are {a}, later {b}: {a} + {b} = <<{a}+{b}={a + b}>>{a + b}.\n#### {a + b}"}


def latex(w: Writer) -> Row:
    a, b = w.chance.randrange(2, 9999), w.chance.randrange(2, 9999)
    return {"prompt": f"Solve \\({a}x - {b} = 0\\) for x. {w.sentence()}",
            "completion": f"Add \\({b}\\) on both sides: \\[{a}x = {b},\\] so \\(x = \\frac{{{b}}}{{{a}}}\\)."}


def emoji(w: Writer) -> Row:
    faces = ["😀", "😎", "🚀", "🎉", "👩\u200d🔬", "🇩🇪", "❤️", "👍🏽", "🐢", "🍞"]
    return {"messages": [{"role": "user", "content": f"{w.ask()} {w.chance.choice(faces)}"},
                         {"role": "assistant", "content": f"{w.text(2, 4)} {''.join(w.chance.choices(faces, k=4))}"}]}


def sentiment(w: Writer) -> Row:
    return {"prompt": f"Is this review positive, negative or neutral? Answer with one word.\n\n{w.text(3, 6)}",
            "completion": w.chance.choice(("positive", "negative", "neutral"))}


def labelled(w: Writer) -> Row:
    return {"text": w.text(3, 6), "label": w.chance.choice(("sport", "politics", "culture", "science"))}


def extraction(w: Writer) -> Row:
    who, when = w.sentence(), f"20{w.chance.randrange(10, 26)}-0{w.chance.randrange(1, 9)}-1{w.chance.randrange(9)}"
    return {"prompt": f"Extract as JSON: {who} It was on {when}, number {w.chance.randrange(10**6)}.",
            "completion": json.dumps({"who": who, "when": when, "tags": ["a", "b"]})}


def markdown(w: Writer) -> Row:
    points = "\n".join(f"{n}. **{w.sentence()}**\n   - {w.sentence()}" for n in range(1, 4))
    answer = f"## Answer\n\n{points}\n\n| a | b |\n|---|---|\n| 1 | {w.sentence()} |"
    return {"messages": [{"role": "user", "content": w.ask()}, {"role": "assistant", "content": answer}]}


def html(w: Writer) -> Row:
    return {"prompt": f"Make a page: {w.ask()}", "completion": f"<html><body><p id='x'>{w.sentence()}</p></body></html>"}


def faq(w: Writer) -> Row:
    return {"question": w.ask(), "answer": w.text(1, 3)}


def letters(w: Writer) -> Row:
    return {"prompt": w.ask(),
            "completion": f"Sehr geehrte Damen und Herren,\n\n{w.text(2, 4)}\n\nMit freundlichen Grüßen\nA. Beispiel"}


def oasst(w: Writer) -> Row:
    return {"messages": chat(w, w.chance.randint(1, 3)), "lang": "en", "message_tree_id": w.chance.randrange(10**9)}


def table(rows: list[Row], delimiter: str = ",") -> bytes:
    out = io.StringIO(newline="")
    writer = csv.DictWriter(out, fieldnames=list(rows[0]), delimiter=delimiter)
    writer.writeheader()
    writer.writerows(rows)
    return out.getvalue().encode("utf-8-sig")


def parquet(rows: list[Row]) -> bytes:
    import pyarrow
    import pyarrow.parquet

    out = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), out)
    return out.getvalue()


def styled(count: int, language: str, make: Callable[[Writer], Row], seed: int) -> list[Row]:
    w = Writer(seed, language)
    return [make(w) for _ in range(count)]


STYLES: dict[str, tuple[str, Callable[[Writer], Row]]] = {
    "alpaca": ("en", alpaca), "dolly": ("en", dolly), "oasst": ("en", oasst), "sharegpt": ("en", sharegpt),
    "code": ("en", code), "sql": ("en", sql), "sums": ("en", sums), "story-sums": ("en", story_sums),
    "latex": ("en", latex), "emoji": ("en", emoji), "sentiment": ("en", sentiment), "labelled": ("en", labelled),
    "extraction": ("en", extraction), "markdown": ("en", markdown), "html": ("en", html), "faq": ("en", faq),
    "german-alpaca": ("de", alpaca), "german-letters": ("de", letters), "french-faq": ("fr", faq),
    "spanish-chat": ("es", sharegpt), "russian-faq": ("ru", faq), "chinese-alpaca": ("zh", alpaca),
    "japanese-faq": ("ja", faq), "korean-faq": ("ko", faq), "arabic-faq": ("ar", faq),
    "system-chat": ("en", lambda w: {"messages": chat(w, 2, "You are a patient teacher.")}),
    "long-texts": ("en", lambda w: {"text": w.text(60, 120)}),
    "plain-german": ("de", lambda w: {"text": w.text(3, 9)}),
    "message-prompts": ("en", lambda w: {"prompt": chat(w, 1)[:1],
                                         "completion": [{"role": "assistant", "content": w.text(2, 4)}]}),
}


def sound(count: int = 240) -> dict[str, bytes]:
    """Name to content. The same bytes at every call."""
    made = {f"{name}.jsonl": jsonl(styled(count, language, make, seed))
            for seed, (name, (language, make)) in enumerate(STYLES.items())}
    german = styled(count, "de", faq, 101)
    made["escaped.jsonl"] = jsonl(german, ascii=True)
    made["windows-lines.jsonl"] = jsonl(styled(count, "en", faq, 102)).replace(b"\n", b"\r\n")
    made["packed.jsonl.gz"] = gzip.compress(jsonl(styled(count, "en", alpaca, 103)), mtime=0)
    made["packed.jsonl.zst"] = zstandard.compress(jsonl(styled(count, "en", alpaca, 104)))
    made["array.json"] = json.dumps(styled(count, "de", alpaca, 105), indent=2, ensure_ascii=False).encode()
    made["table.csv"] = table(styled(count, "en", faq, 106))
    made["table.tsv"] = table(styled(count, "de", faq, 107), "\t")
    made["table.parquet"] = parquet(styled(count, "en", oasst, 108))
    return made
