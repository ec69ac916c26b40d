"""A plan as one JSON object with every key, and the same as lines for people."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from ..domain.document import Json
from ..domain.lease import Offer, Wish
from ..domain.money import Money
from ..domain.names import lasting
from ..domain.price import Price
from ..errors import BadInput, SealtuneError
from ..planning.cards import card_of
from ..planning.choose import best
from ..planning.compare import Elsewhere, Row, compare, elsewhere
from ..planning.fit import cards_for, largest, remedies, verdict
from ..planning.forecast import Planned, advice, forecast, job_on, whole_of
from ..planning.hours import around
from ..planning.memory import MIB
from ..planning.plan import agreement
from ..planning.prices import merged
from ..settings.values import RunFile

SOME_CARD_MIB = 24_564                   # where nobody says which: an RTX 4090


def told(run: Planned, model: str, offers: Sequence[Offer], run_file: RunFile | None, prices: Sequence[Price],
         card: str) -> dict[str, Json]:
    """Sizes in bytes, times in seconds [low, expected, high], amounts as strings in base units; null where not known."""
    said, wish = run.need(), run_file.wish if run_file else Wish()
    mib = judged(card, offers, wish)
    rows = compare(run, offers, wish)
    return {
        "model": {"id": model, "family": run.shape.family, "parameters": run.shape.parameters(), "rough": run.shape.rough},
        "setting": {"method": run.how.method, "rank": run.how.rank, "batch": run.how.batch, "length": run.how.length,
                    "accumulation": run.how.accumulation, "attention": run.how.attention},
        "data": {"train": run.work.rows, "held_out": run.work.held_out, "row_tokens": run.work.row_tokens,
                 "steps": run.work.steps},
        "memory": {"moment": said.moment, "parts": dict(said.parts), "low": said.low, "expected": said.expected,
                   "high": said.high},
        "card": {"mib": mib, "verdict": verdict(said, mib), "largest": _largest(mib, run.how.method)},
        "remedies": [{"text": r.text, "expected": r.expected, "high": r.high} for r in remedies(run.shape, run.how, mib)]
        if verdict(said, mib) != "fits" else [],
        "advice": advice(run, mib) if verdict(said, mib) != "fits" else None,
        "cards": [{"card": one.name, "mib": one.mib, "verdict": word, "measured": one.measured,
                   "seconds": _span(whole_of(job_on(run, one), run)) if word in ("fits", "tight") else None}
                  for one, word in cards_for(run.shape, run.how)],
        "around": {name: _span(span) for name, span in around(run.weights).items()},
        "offers": [_offer(row) for row in rows],
        "elsewhere": [_elsewhere(row) for row in elsewhere(run, merged(prices))],
        "confirm": _confirm(run, offers, wish, run_file), "error": None,
    }


def judged(card: str, offers: Sequence[Offer], wish: Wish) -> int:
    """MiB of the card in question: the one that was named, the largest on offer, what the run file wants, or a common one.
    BadInput for a name that is not known."""
    if card:
        known = card_of(card)
        if known is None and not card.isdigit():
            raise BadInput(f"--card {card!r} is not known here", hint="its memory in GiB will do: --card 24")
        return known.mib if known else int(card) * 1024
    return max((o.claim.vram_mib for o in offers if o.claim), default=wish.vram_gib * 1024 or SOME_CARD_MIB)


def _largest(mib: int, method: str) -> dict[str, Json] | None:
    found = largest(mib, method)
    return {"model": found.model, "length": found.length, "batch": found.batch, "high": found.high} if found else None


def _span(span: Any) -> list[int]:
    return [span.low, span.expected, span.high]


def _units(money: Money | None) -> str | None:
    return str(money.units) if money else None


def _offer(row: Row) -> dict[str, Json]:
    offer, seen = row.offer, row.forecast
    return {"offer": offer.offer_id, "market": offer.market, "gpu": seen.card or None, "mib": seen.card_mib or None,
            "per_hour": str(offer.rate.per_hour.units), "reliability": offer.reliability, "verdict": seen.verdict or None,
            "refused": row.refused or None, "best": row.best, "seconds": list(seen.seconds) if seen.seconds[1] else None,
            "cost": _units(row.cost), "most": _units(row.most), "fee": _units(row.fee), "gas": _units(offer.gas),
            "why": seen.why or None}


def _elsewhere(row: Elsewhere) -> dict[str, Json]:
    price = row.price
    return {"where": price.where, "card": price.card, "cards": price.cards, "per_hour": str(price.rate.per_hour.units),
            "date": price.date, "source": price.source, "verdict": row.verdict, "seconds": row.seconds,
            "cost": _units(row.cost)}


def _confirm(run: Planned, offers: Sequence[Offer], wish: Wish, run_file: RunFile | None) -> dict[str, Json] | None:
    """What `sealtune run` would ask to confirm, or why it would refuse; null without a run file or an offer."""
    if run_file is None or not offers:
        return None
    empty: dict[str, Json] = dict.fromkeys(("offer", "seconds", "deposit", "fee", "gas", "worst_case", "bounded"))
    try:
        largest_mib = max((o.claim.vram_mib for o in offers if o.claim), default=0)
        offer = best(offers, wish, (), run.least_mib, advice(run, largest_mib))
        agreed = agreement(offer, run_file.seconds, run_file.budget, forecast(run, offer))
    except SealtuneError as no:
        return {**empty, "refused": str(no), "hint": no.hint}
    return {"offer": offer.offer_id, "seconds": agreed.seconds, "deposit": _units(agreed.deposit), "fee": _units(agreed.fee),
            "gas": _units(agreed.gas), "worst_case": _units(agreed.worst_case), "bounded": agreed.bounded, "refused": None,
            "hint": None}


# ---- for people --------------------------------------------------------------------------------------------


def shown(tree: dict[str, Any]) -> Iterator[str]:
    model, how, data, memory = tree["model"], tree["setting"], tree["data"], tree["memory"]
    rough = ", of a family that is not known here: rough" if model["rough"] else ""
    yield f"model      {model['id']}, {large(model['parameters'])} parameters{rough}"
    low_rank = f"{how['method']}, rank {how['rank']}"
    way = "all weights (which `run` does not train yet)" if how["method"] == "full" else low_rank
    yield f"training   {way}, {how['batch']} rows of up to {how['length']:,} tokens at a time"
    yield (f"data       {data['train']:,} rows and {data['held_out']:,} held out, about {data['row_tokens']} tokens each; "
           f"{data['steps']:,} steps")
    low, expected, high = (gib(memory[name]) for name in ("low", "expected", "high"))
    yield f"memory     about {expected} ({low} to {high}), most at: {memory['moment']}"
    yield "           " + ", ".join(f"{name} {gib(size)}" for name, size in memory["parts"].items() if size >= 50 * MIB)
    yield from _of_cards(tree)
    yield from _of_offers(tree["offers"])
    yield from _of_elsewhere(tree["elsewhere"])
    yield from _of_confirm(tree["confirm"])


def large(number: int) -> str:
    return f"{number / 1e9:.2f} billion" if number >= 1e8 else f"{number / 1e6:.2f} million"


def gib(size: int) -> str:
    return f"{size / 2**30:.1f} GiB"


def _of_cards(tree: dict[str, Any]) -> Iterator[str]:
    card = tree["card"]
    yield f"card       {card['mib'] / 1024:.1f} GiB: {card['verdict']}"
    for way in tree["remedies"]:
        yield f"           fits with {way['text']} ({gib(way['expected'])} to {gib(way['high'])})"
    if tree["advice"] and not tree["remedies"]:
        yield f"           would fit with {tree['advice']}"
    if (most := card["largest"]) is not None:
        rows = f", or {most['batch']} rows of 1,024" if most["batch"] else ""
        yield f"           the largest of the table there: {most['model']}, one row of {most['length']:,} tokens{rows}"
    good = [one for one in tree["cards"] if one["seconds"]]
    for one in good[:6]:
        source = "" if one["measured"] else " (by its maker's figures)"
        yield f"           {one['card']:18} {one['verdict']:6} {times(one['seconds'])}{source}"


def times(seconds: list[int]) -> str:
    """Hours to a tenth: nothing here is known better."""
    low, expected, high = (lasting(s if s < 3600 else round(s / 360) * 360) for s in seconds)
    return f"about {expected} ({low} to {high})"


def _of_offers(offers: list[dict[str, Any]]) -> Iterator[str]:
    from .rentals import usdc

    for one in offers:
        head = f"offer      {'*' if one['best'] else ' '} {one['offer']:14} {one['gpu'] or 'your own server':22}"
        if one["refused"]:
            yield f"{head} refused: {one['refused']}"
        elif one["cost"] is None:
            yield f"{head} {one['verdict'] or ''} {usdc(one['per_hour'])} per hour; hours are not known: {one['why']}"
        else:
            yield (f"{head} {one['verdict']:6} {times(one['seconds'])}, {usdc(one['cost'])}, at most {usdc(one['most'])} "
                   f"with a fee of {usdc(one['fee'])} in it")


def _of_elsewhere(rows: list[dict[str, Any]]) -> Iterator[str]:
    for one in rows:
        cost = f"{int(one['cost']) / 1e6:,.2f} USD" if one["cost"] else one["verdict"]
        machine = f"{one['cards']} x " if one["cards"] > 1 else ""
        yield (f"elsewhere  {one['where']:18} {machine + one['card']:16} {cost:>16}  "
               f"({int(one['per_hour']) / 1e6:,.2f} an hour on {one['date']})")


def _of_confirm(confirm: dict[str, Any] | None) -> Iterator[str]:
    from .rentals import usdc

    if confirm is None:
        return
    if confirm["refused"]:
        yield f"run        would be refused: {confirm['refused']}"
        yield f"           {confirm['hint']}" if confirm["hint"] else ""
        return
    bound = "" if confirm["bounded"] else ", with no bound if this laptop dies"
    yield (f"run        would confirm {confirm['offer']} for at most {lasting(confirm['seconds'])}, first deposit "
           f"{usdc(confirm['deposit'])}, worst case {usdc(confirm['worst_case'])}{bound}; gas comes on top")
