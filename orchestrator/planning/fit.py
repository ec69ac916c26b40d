"""Does it fit a card, and what would make it fit. Pure.

A verdict holds the three figures of a need against all the memory that a card shows; the driver's own part is in the need.
"""
from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, replace

from .cards import CARDS, Card
from .memory import MIB, Need, Setting, need
from .models import TABLE, must_be_named
from .shapes import Shape

VERDICTS = ("fits", "tight", "unlikely", "does not fit")
SHORTEST, STEP = 128, 128                # tokens: below, hardly a row of text is whole
LONGEST = 131_072
RANKS = (64, 32, 16, 8, 4)


@dataclass(frozen=True, slots=True)
class Remedy:
    """One change, or several, with which it fits."""

    text: str
    how: Setting
    expected: int                        # bytes
    high: int


@dataclass(frozen=True, slots=True)
class Largest:
    """The largest model of the table that a card takes, how long a row may be alone, and how many short ones."""

    model: str
    length: int                          # with a batch of one
    batch: int                           # with rows of 1,024 tokens; 0 where none fits
    high: int


def verdict(said: Need, mib: int) -> str:
    """fits: even the high figure. tight: the expected. unlikely: only the low one. does not fit: not even that."""
    sizes = (said.high, said.expected, said.low)
    return next((word for word, size in zip(VERDICTS, sizes, strict=False) if size <= mib * MIB), VERDICTS[-1])


def fits(shape: Shape, how: Setting, mib: int) -> bool:
    return verdict(need(shape, how), mib) == "fits"


def smallest_card(shape: Shape, how: Setting) -> Card | None:
    """The one with the least memory that it fits; None where none does."""
    return min((card for card in CARDS if fits(shape, how, card.mib)), key=lambda card: card.mib, default=None)


def remedies(shape: Shape, how: Setting, mib: int) -> list[Remedy]:
    """Each single change that makes it fit; where no single one does, the first of several together that do."""
    found = [found for change in (_batch, _length, _rank, _four_bits) if (found := change(shape, how, mib))]
    if found:
        return found
    packed = replace(how, method="qlora")
    one = replace(packed, batch=1, rank=min(how.rank, RANKS[-1]))
    text = f"method: qlora, per_device_train_batch_size: 1, lora_r: {one.rank}"
    tried = ((_batch(shape, packed, mib), "method: qlora, "), (_length(shape, packed, mib), "method: qlora, "),
             (_remedy(shape, one, "") if fits(shape, one, mib) else None, text), (_length(shape, one, mib), f"{text}, "))
    return [replace(found, text=before + found.text) for found, before in tried if found][:1]


def _batch(shape: Shape, how: Setting, mib: int) -> Remedy | None:
    size = _most(1, how.batch - 1, lambda batch: fits(shape, replace(how, batch=batch), mib))
    return _remedy(shape, replace(how, batch=size), f"per_device_train_batch_size: {size}") if size else None


def _length(shape: Shape, how: Setting, mib: int) -> Remedy | None:
    steps = _most(SHORTEST // STEP, (how.length - 1) // STEP, lambda n: fits(shape, replace(how, length=n * STEP), mib))
    return _remedy(shape, replace(how, length=steps * STEP), f"max_length: {steps * STEP}") if steps else None


def _rank(shape: Shape, how: Setting, mib: int) -> Remedy | None:
    tried = (replace(how, rank=rank) for rank in RANKS if rank < how.rank and how.method != "full")
    return next((_remedy(shape, smaller, f"lora_r: {smaller.rank}") for smaller in tried if fits(shape, smaller, mib)), None)


def _four_bits(shape: Shape, how: Setting, mib: int) -> Remedy | None:
    packed = replace(how, method="qlora")
    return _remedy(shape, packed, "method: qlora") if how.method != "qlora" and fits(shape, packed, mib) else None


def _remedy(shape: Shape, how: Setting, text: str) -> Remedy:
    said = need(shape, how)
    return Remedy(text, how, said.expected, said.high)


def largest(mib: int, method: str = "qlora", models: Iterable[str] = TABLE) -> Largest | None:
    """The model with the most parameters of which a row of 512 tokens fits; None where none does."""
    base = Setting(method, batch=1, length=512)
    for model in sorted(models, key=lambda name: -must_be_named(name).parameters()):
        shape = must_be_named(model)
        how = replace(base, attention="eager" if shape.softcap else "sdpa")
        if fits(shape, how, mib):
            return _how_large(model, shape, how, mib)
    return None


def _how_large(model: str, shape: Shape, how: Setting, mib: int) -> Largest:
    steps = _most(1, LONGEST // STEP, lambda n: fits(shape, replace(how, length=n * STEP), mib))
    batch = _most(1, 64, lambda n: fits(shape, replace(how, length=1024, batch=n), mib))
    return Largest(model, steps * STEP, batch, need(shape, replace(how, length=steps * STEP)).high)


def _most(low: int, high: int, holds: Callable[[int], bool]) -> int:
    """The largest number from `low` to `high` for which it holds, 0 where for none. Once false, it is false from there."""
    if high < low or not holds(low):
        return 0
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


def cards_for(shape: Shape, how: Setting) -> Iterator[tuple[Card, str]]:
    """Every card, the smallest first, with its verdict."""
    said = need(shape, how)
    for card in sorted(CARDS, key=lambda card: card.mib):
        yield card, verdict(said, card.mib)
