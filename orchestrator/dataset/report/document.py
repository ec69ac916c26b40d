"""The report as one JSON document, schema sealtune/data-check/1. All keys are always there.

    schema, file, digest         "sealtune/data-check/1", the file's name, "sha256:…" of its bytes
    format, kind, rows           as detected; messages | text; how many rows were good
    verdict                      sound | doubtful | faulty
    counts                       {code: how many} of all findings
    findings                     the first 20 of each code: {weight, code, file, line, column, what, mend}
    ended_early                  true: the reading stopped at a thousand faults
    looked_into                  {rows, of, all}: what the second reading saw
    characters                   {asked, answered}: [[at most, rows], …] by powers of two; {all, longest}
    languages                    [[name, rows], …]
    classes                      {labelled, names: [[name, rows], …]}; names null with `plain`
    topics                       [[word, rows], …]; null with `plain`
    split                        {train, held_out, stratified, rule}; null while there are faults
    tokens                       {model, max_length, why, rows, all, longest, cut, lost, lengths: [[at most, rows], …]}
    leakage                      {file, rows, same, asked, near}; null without a test file
    preview                      two rows as the model will see them; null with `plain`

`plain`: nothing of what rows say is in it.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from ...domain.document import Json
from ..check import RULE, Checked
from ..faults import Weight
from ..leakage import Leakage
from ..tokens import Tokens

SCHEMA = "sealtune/data-check/1"


@dataclass(frozen=True, slots=True)
class Findings:
    """All that one command found out."""

    checked: Checked
    tokens: Tokens
    leakage: Leakage | None = None
    preview: tuple[str, ...] = ()


def document(found: Findings, plain: bool = False) -> dict[str, Json]:
    checked = found.checked
    tally, looked, structure = checked.tally, checked.content, checked.structure
    cover, faults = looked.coverage, tally.faults
    return {
        "schema": SCHEMA, "file": checked.source.path.name, "digest": checked.source.digest,
        "format": structure.format, "kind": checked.kind, "rows": checked.rows, "verdict": verdict(checked),
        "counts": dict(sorted(tally.counts.items())),
        "findings": [asdict(one) for weight in Weight for one in tally.of(weight)],
        "ended_early": structure.ended_early,
        "looked_into": {"rows": len(looked.lines), "of": checked.rows, "all": len(looked.lines) == checked.rows},
        "characters": {"asked": _powers(structure.asked), "answered": _powers(structure.answered),
                       "all": structure.characters, "longest": structure.longest},
        "languages": [list(pair) for pair in looked.languages.most_common()],
        "classes": {"labelled": bool(cover and cover.labelled),
                    "names": None if plain else [list(pair) for pair in (cover.classes if cover else ())]},
        "topics": None if plain else [list(pair) for pair in (cover.topics if cover else ())],
        "split": None if faults else {"train": checked.rows - checked.held_out, "held_out": checked.held_out,
                                      "stratified": checked.stratified, "rule": RULE},
        "tokens": _tokens(found.tokens), "leakage": asdict(found.leakage) if found.leakage else None,
        "preview": None if plain else list(found.preview),
    }


def verdict(checked: Checked) -> str:
    """sound | doubtful | faulty."""
    if checked.tally.faults:
        return "faulty"
    return "doubtful" if checked.tally.of(Weight.DOUBT) else "sound"


def _powers(counts: Sequence[int]) -> list[list[int]]:
    """[at most, rows] for each power of two that has rows."""
    return [[(1 << bits) - 1, rows] for bits, rows in enumerate(counts) if rows]


def _tokens(tokens: Tokens) -> dict[str, Json]:
    lengths = Counter(length.bit_length() for length in tokens.lengths)
    return {"model": tokens.model, "max_length": tokens.max_length, "why": tokens.why, "rows": len(tokens.lengths),
            "all": sum(tokens.lengths), "longest": max(tokens.lengths, default=0), "cut": tokens.cut, "lost": tokens.lost,
            "lengths": [[(1 << bits) - 1, lengths[bits]] for bits in sorted(lengths)]}
