"""Signs that a row is not what was meant: a template's markers in its text, an answer that is cut, empty words, damage.

Each is looked for in the bytes of a whole block first, so that rows without them cost nothing.
"""
from __future__ import annotations

import re
from collections.abc import Iterator

from .faults import Fault
from .formats import Row

MARKER = re.compile(r"<\|[a-zA-Z_]+(?:\|>|▁)|\[/?INST\]|<<SYS>>|</?s>|<(?:start|end)_of_turn>|<(?:bos|eos|pad)>"
                    r"|^### (?:Instruction|Response|Input):", re.MULTILINE)
DAMAGE = re.compile(r"[\u00c2\u00c3][\u0080-\u00bf]|\u00e2\u20ac[\u0080-\u20ff\u2122]")
CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f\x80-\x9f]")
BYTES = tuple(map(re.compile, (          # what gives the above away; each begins with one byte, which is found at once
    rb"<(?:\||/?s>|<SYS|start_of_turn|end_of_turn|bos>|eos>|pad>)", rb"\[/?INST\]", rb"#(?=## (?:Ins|Res|Inp))",
    rb"\xc3(?:[\x82\x83]|\xa2\xe2)", rb"\xc2[\x80-\x9f]", rb"\xef(?=\xbf\xbd)", rb"\x7f", rb"`(?=``)",
    rb"\\(?:u00|ufff|u2|[bf/])")))         # the last: what JSON can hide them behind
HOLLOW = frozenset({"n/a", "na", "none", "null", "nan", "todo", "tbd", "...", "…", "undefined", "[deleted]", "[removed]",
                    "-", "?", "lorem ipsum", "[object object]", "<noinput>", "<nooutput>", "xxx"})
REFUSAL = re.compile(r"as an? (?:ai|large) language model|als ki-sprachmodell|ich bin (?:nur )?ein ki", re.IGNORECASE)
OPEN_END = frozenset(",([{;")
OPEN_WORDS = frozenset({"and", "or", "the", "because", "und", "oder", "weil", "sowie"})
LONG_ENOUGH = 60                         # characters of an answer whose open end means something


Marks = tuple[re.Pattern[bytes], ...]


def in_block(block: bytes) -> Marks:
    """What to look for in the rows of this block; () for most."""
    return tuple(mark for mark in BYTES if mark.search(block))


def of_answer(question: str, answer: str) -> Iterator[tuple[str, Fault]]:
    """(code, words) of what an answer itself gives away. Cheap: asked of every row."""
    if len(answer) < 20 and answer.strip().lower() in HOLLOW:
        yield "hollow", Fault("the answer is a placeholder", "write the answer, or leave the row out")
    elif answer == question and len(answer) > 20:
        yield "echo", Fault("the answer repeats the question", "write the answer, or leave the row out")
    elif len(answer) >= LONG_ENOUGH and ends_open(answer):
        yield "cut", Fault("the answer seems to be cut: it ends in the middle of a sentence", "write it to its end")
    if len(answer) < 400 and "anguage model" in answer and REFUSAL.search(answer):
        yield "refusal", Fault("the answer is an assistant's excuse", "the model would learn to decline; leave the row out")


def ends_open(answer: str) -> bool:
    end = answer.rstrip()
    return end[-1] in OPEN_END or (end[-1].isalpha() and end[-9:].rsplit(None, 1)[-1] in OPEN_WORDS)


def of_text(row: Row) -> Iterator[tuple[str, Fault]]:
    """(code, words) of what stands in a row's text. Asked of rows in whose block something was seen."""
    texts = [row["text"]] if "text" in row else [turn["content"] for turn in row["messages"]]
    if any(MARKER.search(text) for text in texts):
        yield "marker", Fault("a chat template's marker stands in the text",
                              "take it out: the model's own template is put around each row")
    if any("\ufffd" in text for text in texts):
        yield "lost", Fault("a character was lost (\ufffd stands in its place)", "make the file anew from its source")
    elif any(DAMAGE.search(text) for text in texts):
        yield "garbled", Fault("letters are garbled: UTF-8 was read as Latin-1 once",
                               "make the file anew from its source, or text.encode('cp1252').decode('utf-8')")
    if any(CONTROL.search(text) for text in texts):
        yield "control", Fault("an invisible control character stands in the text", "take it out")
    if texts[-1].count("```") % 2:
        yield "fence", Fault("a code block (```) in the answer is not closed: it seems to be cut", "write it to its end")
