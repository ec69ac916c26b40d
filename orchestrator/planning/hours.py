"""How long a run takes: from rows and a card to seconds, low, expected and high. Pure.

What a GPU does is counted in operations, two for each parameter and token in each pass (Kaplan et al., arXiv 2001.08361,
section 2.1; Korthikanti et al., arXiv 2205.05198, for layers computed again), and divided by what the card reached for
others (cards.py). Small steps are bound by starting work, not by doing it. Everything around the training is listed.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from math import ceil

from .cards import Card
from .memory import Setting
from .shapes import Shape

BYTES_PER_TOKEN = 3.6                    # English about 4, German about 3.2 with today's vocabularies of 100,000 and more
BYTES_AROUND = 40                        # keys, quotes and brackets of a row
PADDING = 1.25                           # rows of a batch are filled up to the longest
START = {"lora": 0.0047, "full": 0.0047, "qlora": 0.0117}   # seconds a layer and step: Qwen-7B, 256 tokens, A100 (cards.py)
ANSWER = 0.0015                          # seconds a layer and token when answers are written one token after the other
ANSWERS_AT_ONCE = 16
MEASURED, BY_MAKER = (0.7, 1.0, 1.6), (0.5, 1.0, 2.5)       # how far the times of such cards may be off
ENVIRONMENT = 3_160_000_000              # bytes of wheels (measured; CUDA 13)
BANDWIDTH = (125_000_000, 37_500_000, 12_500_000)            # bytes a second: 1,000, 300, 100 Mbit/s
AROUND = {"connecting": (30, 60, 180), "installing": (60, 90, 240), "challenge": (40, 120, 300), "shipping": (5, 20, 60),
          "loading the model": (30, 60, 180), "bringing home and wiping": (60, 120, 300)}


@dataclass(frozen=True, slots=True)
class Span:
    """Seconds: low, expected, high."""

    low: int
    expected: int
    high: int

    def __add__(self, other: Span) -> Span:
        return Span(self.low + other.low, self.expected + other.expected, self.high + other.high)

    def times(self, factor: float) -> Span:
        return Span(round(self.low * factor), round(self.expected * factor), round(self.high * factor))


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done. `row_tokens`: of a row on average, not more than are kept of it."""

    rows: int
    held_out: int
    row_tokens: int
    steps: int
    answers: int = 0
    answer_tokens: int = 64

    @property
    def tokens(self) -> int:
        """Of one pass over all rows, without padding."""
        return self.rows * self.row_tokens


def setting_of(method: str, knobs: Mapping[str, str], shape: Shape) -> Setting:
    """The run file's knobs as the node takes them. `auto` is a batch of 8 there."""
    def words(name: str) -> tuple[str, ...]:
        return tuple(word.strip() for word in knobs.get(name, "").split(",") if word.strip())

    batch = knobs.get("per_device_train_batch_size", "auto")
    return Setting(
        method, rank=int(knobs.get("lora_r", 16)), targets=words("target_modules") or ("all-linear",),
        saved=words("modules_to_save"), dropout=float(knobs.get("lora_dropout", "0.05")) > 0,
        batch=8 if batch == "auto" else int(batch), length=int(knobs.get("max_length", 1024)),
        accumulation=int(knobs.get("gradient_accumulation_steps", 1)), attention="eager" if shape.softcap else "sdpa")


def tokens_in(size: int, rows: int) -> int:
    """Of a row on average, guessed from the bytes of all rows."""
    return round(max(8.0, (size / max(1, rows) - BYTES_AROUND) / BYTES_PER_TOKEN))


def work_of(rows: int, held_out: int, row_tokens: int, knobs: Mapping[str, str], how: Setting, chat: bool = True) -> Work:
    """From counts of rows and of a row's tokens."""
    steps = int(knobs.get("max_steps", -1))
    if steps <= 0:
        steps = ceil(ceil(rows / (how.batch * how.accumulation)) * float(knobs.get("num_train_epochs", 3)))
    answers = min(held_out, int(knobs.get("eval_generations", 64))) if chat else 0
    return Work(rows, held_out, min(row_tokens, how.length), max(1, steps), answers, int(knobs.get("max_new_tokens", 64)))


def operations(shape: Shape, how: Setting) -> int:
    """Of training on one token: forward, backward, forward again when checkpointing, the weights' own gradients when all are
    trained; and attention over half of the row."""
    passes = 2 + how.checkpointing + (how.method == "full")
    parameters = shape.in_layers() + shape.table()
    return 2 * passes * (parameters + shape.layers * shape.wide * how.length)


def training(shape: Shape, how: Setting, work: Work, card: Card) -> Span:
    """All steps on this card."""
    tokens = work.steps * how.batch * how.accumulation * min(work.row_tokens * PADDING, how.length)
    busy = tokens * operations(shape, how) / card.speed(how.method)
    starting = work.steps * how.accumulation * shape.layers * START[how.method]
    return _off(max(busy, starting) + starting / 4, card)


def evaluating(shape: Shape, how: Setting, work: Work, card: Card) -> Span:
    """Both sides: the loss of all held-out rows, and the answers."""
    batches = ceil(work.held_out / how.batch)
    losses = max(work.held_out * work.row_tokens * PADDING * operations(shape, how) / 3 / card.speed(how.method),
                 batches * shape.layers * START[how.method] / 3)
    answers = ceil(work.answers / ANSWERS_AT_ONCE) * work.answer_tokens * shape.layers * ANSWER
    return _off(2 * (losses + answers), card)


def _off(seconds: float, card: Card) -> Span:
    low, expected, high = (ceil(seconds * share) for share in (MEASURED if card.measured else BY_MAKER))
    return Span(low, expected, high)


def around(weights: int) -> dict[str, Span]:
    """Everything on the meter beside the job, by name. `weights`: bytes of the base model's files."""
    parts = {name: Span(*seconds) for name, seconds in AROUND.items()}
    for name, size in (("downloading packages", ENVIRONMENT), ("downloading the model", weights)):
        parts[name] = Span(*(ceil(size / speed) for speed in BANDWIDTH))
    return parts
