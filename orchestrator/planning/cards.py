"""Graphics cards: how much memory, and how fast they trained for others. Pure; tables with their sources.

`lora` and `qlora` are what a card reached, in 10^12 operations a second, worked out from published tokens a second by the
count of hours.py (six operations a parameter and token, since the layers are computed twice). Where nothing was published
it is a share of the maker's own figure for dense bfloat16, as other cards reached it; such a card's hours are a wider range.
Cards without bfloat16 (before Ampere) are not here: the node trains in it.
"""
from __future__ import annotations

from dataclasses import dataclass

MEASURED = {
    "answer": "AnswerDotAI/fsdp_qlora benchmarks, Mar 2024: Llama-2-7B, 1,024 rows of 2,048 on two cards",
    "qwen": "QwenLM/Qwen README, Nov 2023: Qwen-7B, 2,048 tokens, A100 80 GB",
    "maker": "maker's dense bfloat16 figure; a share of it as measured on other cards",
}
SHARES = {"lora": 0.45, "qlora": 0.35}   # of the maker's figure: A100 0.47 and 0.35, RTX 4090 0.58 and 0.57


@dataclass(frozen=True, slots=True)
class Card:
    """`mib`: what nvidia-smi shows in all. `lora`, `qlora`: 10^12 operations a second."""

    name: str
    mib: int
    lora: float
    qlora: float
    source: str = "maker"

    @property
    def measured(self) -> bool:
        return self.source != "maker"

    def speed(self, method: str) -> float:
        """Operations a second."""
        return (self.qlora if method == "qlora" else self.lora) * 1e12


def _by_maker(name: str, mib: int, dense: float) -> Card:
    return Card(name, mib, round(dense * SHARES["lora"], 1), round(dense * SHARES["qlora"], 1))


CARDS: tuple[Card, ...] = (
    _by_maker("RTX 3060", 12288, 51),
    _by_maker("RTX 4060 Ti", 16380, 88),
    _by_maker("RTX 4000 SFF Ada", 20475, 77),
    _by_maker("RTX 4000 Ada", 20475, 107),
    Card("RTX 3090", 24576, 48.0, 48.4, "answer"),
    Card("RTX 4090", 24564, 97.0, 94.2, "answer"),
    _by_maker("A10G", 23028, 70),
    _by_maker("A10", 23028, 125),
    _by_maker("L4", 23034, 121),
    _by_maker("RTX A5000", 24564, 111),
    _by_maker("RTX 5090", 32607, 209),
    _by_maker("A100 40GB", 40960, 312),
    _by_maker("RTX A6000", 49140, 155),
    _by_maker("RTX 6000 Ada", 49140, 364),
    _by_maker("L40S", 46068, 362),
    Card("A100 80GB", 81920, 145.8, 108.4, "qwen"),
    _by_maker("H100 PCIe", 81559, 756),
    _by_maker("H100", 81559, 989),
    _by_maker("RTX PRO 6000", 97887, 503),
    _by_maker("H200", 143771, 989),
)


def card_of(gpu: str, mib: int = 0) -> Card | None:
    """The card that a claim names: the longest name that its words hold, and of two memories the nearer one. "Simulated",
    "NVIDIA" and the like do not matter. None for one that is not known here."""
    said = f" {gpu.casefold().replace('-', ' ')} "
    held = [card for card in CARDS if all(f" {word} " in said for word in _words(card))]
    if not held:
        return None
    longest = max(len(_words(card)) for card in held)
    return min((card for card in held if len(_words(card)) == longest), key=lambda card: abs(card.mib - mib))


def _words(card: Card) -> list[str]:
    return [word for word in card.name.casefold().split() if not word.endswith("gb")]
