"""What a plan costs: every named model by every method on every card, and a market of two thousand offers side by side.

The times are printed (`-s` shows them) and kept as properties of the test; none is judged, since a time is the machine's.
"""
from __future__ import annotations

import time
from collections.abc import Callable

from orchestrator.domain.lease import HardwareClaim, Offer, Wish
from orchestrator.domain.money import USDC, Money, Rate
from orchestrator.planning.cards import CARDS
from orchestrator.planning.compare import compare
from orchestrator.planning.fit import cards_for, largest, remedies
from orchestrator.planning.forecast import planned
from orchestrator.planning.memory import METHODS, Setting
from orchestrator.planning.models import TABLE, must_be_named

OFFERS = 2_000


def market() -> list[Offer]:
    cards = (CARDS[number % len(CARDS)] for number in range(OFFERS))
    return [Offer("open", str(number), Rate(Money(200_000 + number * 977 % 800_000, USDC)),
                  HardwareClaim(card.name, 1, card.mib), 86_400, 100, None, 900 + number % 100)
            for number, card in enumerate(cards)]


def test_a_plan_is_a_moments_work(record_property: Callable[[str, object], None]) -> None:
    before = time.perf_counter()
    judged = 0
    for shape in map(must_be_named, TABLE):
        for method in METHODS:
            judged += len(list(cards_for(shape, Setting(method))))
            remedies(shape, Setting(method), 24_564)
    assert all(largest(card.mib) for card in CARDS)
    tables = time.perf_counter() - before
    before = time.perf_counter()
    rows = compare(planned(must_be_named("Llama-3.1-8B"), "qlora", (), 900, 100, 300, chat=True), market(), Wish())
    offers = time.perf_counter() - before
    assert judged == len(TABLE) * len(METHODS) * len(CARDS) and len(rows) == OFFERS and rows[0].best
    told = {"verdicts": judged, "tables_s": round(tables, 3), "offers": len(rows), "compare_s": round(offers, 3)}
    for name, value in told.items():
        record_property(name, value)
    print(told)
