"""What a dataset answers of the six questions, and why it is taken so."""
from __future__ import annotations

from typing import TYPE_CHECKING

from .known import labelled

if TYPE_CHECKING:
    from ..dataset.check import Checked
    from ..dataset.lesson import Lesson
    from .shapes import before as shapes

MOSTLY, HALF, FOREIGN = 900, 500, 700    # permille
SHORT = 300                              # characters of an answer that is a line or a few fields


def answered(found: Checked) -> tuple[dict[str, str], list[str], shapes.Lesson]:
    """(answers by question, why, figures). What no dataset can say is left out."""
    from ..dataset.lesson import lesson

    seen = lesson(found.source, found.structure.format, None)
    need, why = _need(found, seen)
    answer = "label" if labelled(found) else "short" if seen.answer <= SHORT else "long"
    facts: shapes.Lesson = {
        "file": found.source.path.name, "format": found.structure.format, "rows": found.rows, "looked_into": seen.rows,
        "classes": labelled(found), "lone_questions": seen.lone_questions, "forms": seen.forms, "foreign": seen.foreign,
        "answer": seen.answer}
    return {"need": need, "answer": answer, "examples": str(found.rows)}, [why], facts


def _need(found: Checked, seen: Lesson) -> tuple[str, str]:
    if found.kind == "text" and labelled(found):
        return "behaviour", "the labels of the texts are not trained on: write each text as prompt, its label as completion"
    if found.kind == "text":
        return "knowledge", "the rows are plain text: of such a training a model keeps the style, and little of the facts"
    if labelled(found):
        return "behaviour", "the answers are classes: a task to be done right"
    if seen.forms >= MOSTLY:
        return "behaviour", "the answers are JSON, code, pages or numbers: a form to be kept"
    if seen.foreign is None:
        return "unsure", "the rows do not tell whether they teach facts or a way of answering"
    if seen.lone_questions >= HALF and seen.foreign >= FOREIGN:
        return "knowledge", (f"{seen.lone_questions // 10} % of the rows are questions that stand alone, and "
                             f"{seen.foreign // 10} % of an answer's words are not in its question: they ask for facts")
    return "behaviour", "the answers follow from what stands before them: a way of answering"
