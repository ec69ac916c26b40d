"""What a machine costs elsewhere, as somebody published it. A value; never an offer."""
from __future__ import annotations

from dataclasses import dataclass

from .money import Currency, Rate

USD = Currency("USD", 6)


@dataclass(frozen=True, slots=True)
class Price:
    """`cards`: how many the machine has; one is used, all are paid."""

    where: str
    card: str
    rate: Rate
    date: str                            # YYYY-MM-DD, when the source was read
    source: str
    cards: int = 1
