"""What the same hours cost elsewhere. Pure; a dated table, which settings.yaml may replace line by line.

Nothing here is an offer. The prices are those that the source gives for its day, for one machine an hour, whole machines as
they are rented; taxes, disks and traffic come on top. USDC is taken for US dollars.
"""
from __future__ import annotations

from collections.abc import Iterable

from ..domain.money import Money, Rate
from ..domain.price import USD, Price


def usd(text: str) -> Rate:
    return Rate(Money.parse(f"{text} USD", USD))


PRICES: tuple[Price, ...] = (
    Price("AWS g5 (A10G)", "A10G", usd("1.50"), "2026-11-30", "the guide's figure"),
    Price("AWS p4d.24xlarge", "A100 40GB", usd("21.957642"), "2026-11-09", "AWS price list, us-east-1, by datareceipts", 8),
    Price("AWS p5.48xlarge", "H100", usd("55.04"), "2026-11-09", "AWS price list, us-east-1, by datareceipts", 8),
    Price("Lambda", "A100 40GB", usd("1.99"), "2026-11-16", "lambda.ai/instances, by datareceipts"),
    Price("Lambda", "H100", usd("4.29"), "2026-09-25", "lambda.ai/pricing, by silybench-data"),
    Price("RunPod community", "A100 80GB", usd("1.39"), "2026-11-09", "runpod.io/pricing, by datareceipts"),
    Price("RunPod secure", "A100 80GB", usd("1.79"), "2026-11-09", "runpod.io/pricing, by datareceipts"),
    Price("OpenRelay", "RTX 4090", usd("0.29"), "2026-09-20", "openrelay.inc/pricing, by api-evangelist"),
    Price("OpenRelay", "RTX 3090", usd("0.18"), "2026-09-20", "openrelay.inc/pricing, by api-evangelist"),
    Price("Akash", "RTX PRO 6000", usd("2.04"), "2026-09-20", "akash.network/pricing/gpus, by api-evangelist"),
    Price("Akash", "H200", usd("4.45"), "2026-09-20", "akash.network/pricing/gpus, by api-evangelist"),
)


def merged(own: Iterable[Price]) -> tuple[Price, ...]:
    """The table with the person's own lines in place of those for the same place and card, and the rest of them after."""
    mine = {(p.where.casefold(), p.card.casefold()): p for p in own}
    kept = tuple(mine.pop((p.where.casefold(), p.card.casefold()), p) for p in PRICES)
    return (*kept, *mine.values())
