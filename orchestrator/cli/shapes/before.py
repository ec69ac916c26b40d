"""Objects of the commands that come before a run: `advise`, `init`, `plan`, `data check`. See the package for units."""
from __future__ import annotations

from typing import Literal, TypedDict

Verdict = Literal["fits", "tight", "unlikely", "does not fit", "not known here"]


class Answers(TypedDict):
    """Of the six questions: given, asked, or read from a dataset."""

    need: Literal["behaviour", "knowledge", "both", "unsure"]
    facts: Literal["never", "monthly", "daily"]
    cite: Literal["no", "yes"]
    examples: int
    prompt: Literal["untried", "short", "works"]
    answer: Literal["label", "short", "long", "reasoning"]


class Reason(TypedDict):
    text: str
    source: str


class Start(TypedDict):
    model: str
    smaller: str                         # to try before it
    learning_rate: str                   # a decimal
    epochs: int


class Lesson(TypedDict):
    """What the rows say; shares in permille of the rows looked into."""

    file: str
    format: str
    rows: int
    looked_into: int
    classes: bool                        # the answers fall into some
    lone_questions: int
    forms: int                           # answers that are JSON, code, a page, a number
    foreign: int | None                  # of an answer's words, those that are not before it
    answer: int                          # characters, the median


class Advised(TypedDict):
    verdict: Literal["fine-tune", "rag", "both"]
    answers: Answers
    read: list[str]                      # why a dataset was taken so
    reasons: list[Reason]
    first: list[Reason]                  # what to do before
    training: Start | None               # null where nothing is to be trained
    data: Lesson | None                  # null where no dataset was read
    error: None


class Counts(TypedDict):
    rows: int
    train: int
    held_out: int
    format: str


class Foreseen(TypedDict):
    """On the smallest card that holds it; card, verdict and seconds null where none does."""

    memory: list[int]
    card: str | None
    verdict: Verdict | None
    seconds: list[int] | None


class Written(TypedDict):
    """The run file that `init` wrote."""

    file: str
    model: str
    method: Literal["lora", "qlora"]
    market: Literal["open", "lab", "ssh"]
    budget: str | None                   # null on one's own server
    training: dict[str, str]             # the knobs as they stand there
    data: Counts
    plan: Foreseen | None                # null where the model cannot be worked out
    notes: list[str]
    error: None


class Model(TypedDict):
    id: str
    family: str
    parameters: int
    rough: bool                          # of a family that is not known


class Setting(TypedDict):
    method: Literal["lora", "qlora", "full"]
    rank: int
    batch: int
    length: int
    accumulation: int
    attention: str


class Work(TypedDict):
    train: int
    held_out: int
    row_tokens: int
    steps: int


class Memory(TypedDict):
    moment: str                          # of the peak
    parts: dict[str, int]
    low: int
    expected: int
    high: int


class Largest(TypedDict):
    model: str
    length: int                          # of one row alone
    batch: int                           # of rows of 1,024 tokens
    high: int


class JudgedCard(TypedDict):
    mib: int
    verdict: Verdict
    largest: Largest | None


class Remedy(TypedDict):
    text: str                            # in the run file's words
    expected: int
    high: int


class CardRow(TypedDict):
    card: str
    mib: int
    verdict: Verdict
    measured: bool                       # its speed; false: by its maker's figures
    seconds: list[int] | None            # null where it does not fit


class OfferRow(TypedDict):
    offer: str
    market: str
    gpu: str | None
    mib: int | None
    per_hour: str
    reliability: int | None              # permille
    verdict: Verdict | None
    refused: str | None                  # why it would not be taken
    best: bool                           # no other is better in price, reliability and speed
    seconds: list[int] | None
    cost: str | None                     # expected
    most: str | None                     # at the high figure
    fee: str | None                      # contained in `most`
    gas: str | None
    why: str | None                      # of what is null


class ElsewhereRow(TypedDict):
    where: str
    card: str
    cards: int                           # one is used, all are paid
    per_hour: str                        # USD
    date: str
    source: str
    verdict: Verdict
    seconds: int | None
    cost: str | None


class Confirm(TypedDict):
    """What `run` would ask to confirm; all null but `refused` and `hint` where it would refuse."""

    offer: str | None
    seconds: int | None
    deposit: str | None
    fee: str | None
    gas: str | None
    worst_case: str | None
    bounded: bool | None
    refused: str | None
    hint: str | None


class Plan(TypedDict):
    model: Model
    setting: Setting
    data: Work
    memory: Memory
    card: JudgedCard
    remedies: list[Remedy]
    advice: str | None                   # null where it fits
    cards: list[CardRow]
    around: dict[str, list[int]]         # seconds on the meter beside the job
    offers: list[OfferRow]
    elsewhere: list[ElsewhereRow]
    confirm: Confirm | None              # null without a run file or an offer
    error: None


class Finding(TypedDict):
    weight: Literal["fault", "doubt", "note"]
    code: str
    file: str
    line: int                            # 0: about the whole file
    column: int                          # 0: about the whole line
    what: str
    mend: str


class LookedInto(TypedDict):
    rows: int
    of: int
    all: bool


class Characters(TypedDict):
    """[at most, rows] by powers of two."""

    asked: list[list[int]]
    answered: list[list[int]]
    all: int
    longest: int


class Classes(TypedDict):
    labelled: bool
    names: list[list[str | int]] | None  # [name, rows]; null with --no-rows


class Split(TypedDict):
    train: int
    held_out: int
    stratified: bool
    rule: str


class Tokens(TypedDict):
    model: str
    max_length: int
    why: str                             # why nothing was counted; "" where it was
    rows: int
    all: int
    longest: int
    cut: int
    lost: int                            # rows whose answer is cut away
    lengths: list[list[int]]             # [at most, rows]


class Leakage(TypedDict):
    file: str
    rows: int
    same: int
    asked: int
    near: int


class DataCheck(TypedDict):
    schema: Literal["sealtune/data-check/1"]
    file: str
    digest: str
    format: str
    kind: Literal["messages", "text"]
    rows: int
    verdict: Literal["sound", "doubtful", "faulty"]
    counts: dict[str, int]               # by code
    findings: list[Finding]              # the first 20 of each code
    ended_early: bool                    # at a thousand faults
    looked_into: LookedInto
    characters: Characters
    languages: list[list[str | int]]     # [name, rows]
    classes: Classes
    topics: list[list[str | int]] | None  # [word, rows]; null with --no-rows
    split: Split | None                  # null while there are faults
    tokens: Tokens
    leakage: Leakage | None              # null without a test file
    preview: list[str] | None            # null with --no-rows
