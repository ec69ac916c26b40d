"""The document as one page: opens from a disk without a network, runs nothing, and shows data only as escaped text."""
from __future__ import annotations

import os
from html import escape
from pathlib import Path
from typing import Any

from .plots import bars

MOST_BARS = 25
HEAD = """<!doctype html><html lang="en"><head><meta charset="utf-8"><title>{title}</title>
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<style>body{{font:15px/1.5 system-ui,sans-serif;max-width:56rem;margin:2rem auto;padding:0 1rem;color:#1c2630}}
table{{border-collapse:collapse}}td,th{{padding:.2rem .7rem .2rem 0;text-align:left;vertical-align:top}}
svg text{{font:12px system-ui,sans-serif;fill:#1c2630}}pre{{background:#f2f4f5;padding:.8rem;white-space:pre-wrap}}
.faulty,.fault{{color:#a4281a}}.doubtful,.doubt{{color:#8a5a00}}.sound{{color:#1d6b3a}}figure{{margin:1rem 0}}
small{{color:#5a6670}}</style></head><body>
"""
WORDS = {"sound": "sound: nothing found", "doubtful": "usable, with doubts", "faulty": "cannot be trained on"}


def write(path: Path, text: str) -> None:
    """Only the owner may read it, since rows stand in it. OSError."""
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    made = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
    with os.fdopen(made, "w", encoding="utf-8") as file:
        file.write(text)
    part.replace(path)


def page(tree: dict[str, Any]) -> str:
    """`tree`: what document() made."""
    return "".join([HEAD.format(title=escape(f"data check of {tree['file']}")), _top(tree), _findings(tree), _plots(tree),
                    _tokens(tree["tokens"]), _leakage(tree["leakage"]), _preview(tree["preview"]), "</body></html>\n"])


def _top(tree: dict[str, Any]) -> str:
    looked, split = tree["looked_into"], tree["split"]
    facts = [("format", f"{tree['format']} ({tree['kind']})"), ("rows", f"{tree['rows']:,}"), ("digest", tree["digest"])]
    if split:
        how = ", each class has its share" if split["stratified"] else ""
        facts.append(("split", f"{split['train']:,} to train on, {split['held_out']:,} held out by their hash{how}"))
    seen = "all rows" if looked["all"] else f"a sample of {looked['rows']:,} of {looked['of']:,} rows"
    facts.append(("looked into", f"structure: all rows; likeness, languages, classes, tokens: {seen}"))
    rows = "".join(f"<tr><th>{escape(name)}</th><td>{escape(str(value))}</td></tr>" for name, value in facts)
    verdict = tree["verdict"]
    return f'<h1>{escape(tree["file"])}</h1><p class="{verdict}"><b>{WORDS[verdict]}</b></p><table>{rows}</table>'


def _findings(tree: dict[str, Any]) -> str:
    if not tree["findings"]:
        return ""
    rows = "".join(f'<tr class="{escape(one["weight"])}"><td>{escape(one["weight"])}</td><td>{escape(_place(one))}</td>'
                   f'<td>{escape(one["what"])}</td><td>{escape(one["mend"])}</td></tr>' for one in tree["findings"])
    counts = ", ".join(f"{code} {count}" for code, count in tree["counts"].items())
    return (f"<h2>Found</h2><p><small>of each kind the first are shown; all in all: {escape(counts)}</small></p>"
            f"<table><tr><th></th><th>where</th><th>what</th><th>how to mend it</th></tr>{rows}</table>")


def _place(one: dict[str, Any]) -> str:
    return ":".join([one["file"], *[str(n) for n in (one["line"], one["column"]) if n]])


def _plots(tree: dict[str, Any]) -> str:
    signs = tree["characters"]
    names = tree["classes"]["names"] or []
    kind = "labels" if tree["classes"]["labelled"] else "answers that are classes"
    return "<h2>What is in it</h2>" + "".join([
        bars("characters of the last question", _steps(signs["asked"])),
        bars("characters of the answer", _steps(signs["answered"])),
        bars("languages, roughly", [(name, rows) for name, rows in tree["languages"][:MOST_BARS]]),
        bars(kind, [(name, rows) for name, rows in names[:MOST_BARS]]),
        bars("words that many rows have", [(word, rows) for word, rows in tree["topics"] or []])])


def _steps(pairs: list[list[int]]) -> list[tuple[str, int]]:
    return [(f"up to {most:,}", rows) for most, rows in pairs]


def _tokens(tokens: dict[str, Any]) -> str:
    if tokens["why"]:
        return f"<h2>Tokens</h2><p>not counted: {escape(tokens['why'])}</p>"
    cut = f"{tokens['cut']:,} rows are cut at {tokens['max_length']:,}, {tokens['lost']:,} of them lose their answer"
    return (f"<h2>Tokens of {escape(tokens['model'])}</h2><p>{tokens['all']:,} in {tokens['rows']:,} rows, the longest has "
            f"{tokens['longest']:,}; {cut}</p>" + bars("tokens of a row", _steps(tokens["lengths"])))


def _leakage(leak: dict[str, Any] | None) -> str:
    if not leak:
        return ""
    return (f"<h2>Leakage</h2><p>of {leak['rows']:,} rows in {escape(leak['file'])}, the training file has {leak['same']:,} "
            f"whole, {leak['asked']:,} by their question, {leak['near']:,} nearly</p>")


def _preview(rows: list[str] | None) -> str:
    if not rows:
        return ""
    return "<h2>Two rows as the model will see them</h2>" + "".join(f"<pre>{escape(row)}</pre>" for row in rows)
