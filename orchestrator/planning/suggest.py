"""Where a training may begin: model, method, learning rate, epochs, length, budget. Pure; each value with its source.

These are starts, not optima: the evaluation on held-out rows says what they were worth.
"""
from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from ..domain.price import Price
from .compare import elsewhere
from .fit import fits, smallest_card
from .forecast import Planned, job_on, whole_of
from .hours import setting_of
from .plan import AUTO_SECONDS
from .shapes import Shape

EXAMPLES = (100, 25_000)                 # seen in all, by three epochs or fewer or more
EPOCHS, MOST_EPOCHS = 3, 25
LARGE, TINY = 20 * 10**9, 10**7          # parameters
SHORTEST, LONGEST, STEP = 256, 4096, 128
SLACK = 16                               # tokens of a template that a count by characters does not see
LEAST_DOLLARS, FEW_DOLLARS, MOST_DOLLARS = 2, 5, 50
EPOCHS_SOURCE = "openai-cookbook, Chat_finetuning_data_prep.ipynb"
RATE_SOURCE = "QLoRA, arXiv 2305.14314, appendix B"
TINY_SOURCE = "measured on the lab's own model"
# for answers of this kind; all without a gate, under Apache-2.0, and in the table of models.py
MODELS = {"label": "Qwen/Qwen2.5-1.5B", "short": "Qwen/Qwen2.5-7B", "long": "Qwen/Qwen2.5-7B",
          "reasoning": "Qwen/Qwen2.5-14B"}
SMALLER = {"label": "Qwen/Qwen2.5-0.5B", "short": "Qwen/Qwen2.5-1.5B", "long": "Qwen/Qwen2.5-1.5B",
           "reasoning": "Qwen/Qwen2.5-7B"}       # what to try first: it costs a part


def epochs(rows: int) -> int:
    """Three; more where three would show fewer than 100 examples, fewer where they would show more than 25,000: the rule
    by which a large vendor's own service chooses when it is not told."""
    least, most = EXAMPLES
    if rows * EPOCHS < least:
        return min(MOST_EPOCHS, least // max(1, rows))
    return max(1, min(EPOCHS, most // rows))


def learning_rate(parameters: int) -> Decimal:
    """2e-4 up to 13 billion parameters and 1e-4 from 33 billion on, as in the paper's table of settings. A model of a few
    hundred thousand needs far more."""
    if parameters < TINY:
        return Decimal("0.005")
    return Decimal("0.0001") if parameters > LARGE else Decimal("0.0002")


def rate_source(parameters: int) -> str:
    return TINY_SOURCE if parameters < TINY else RATE_SOURCE


def length(longest: int) -> int:
    """Of rows, in tokens, so that the longest is whole; in steps, and not beyond what a common card holds."""
    return min(LONGEST, max(SHORTEST, -(-(longest + SLACK) // STEP) * STEP))


def method(shape: Shape, knobs: Sequence[tuple[str, str]], mib: int) -> str:
    """lora where it fits a card of this memory, since it is faster and loses nothing to four bits; else qlora."""
    return "lora" if fits(shape, setting_of("lora", dict(knobs), shape), mib) else "qlora"


def budget(run: Planned, prices: Sequence[Price]) -> int:
    """Whole dollars for twice the hours that the plan expects at most, at one and a half times the cheapest price known for
    a card that holds it; what is not used comes back."""
    card = smallest_card(run.shape, run.how)
    known = [row.price.rate for row in elsewhere(run, prices) if row.cost and row.price.cards == 1]
    if card is None or not known:
        return FEW_DOLLARS
    seconds = max(AUTO_SECONDS, 2 * whole_of(job_on(run, card), run).high)
    return min(MOST_DOLLARS, max(LEAST_DOLLARS, -(-known[0].ahead(seconds).units * 3 // (2 * 10**6))))
