"""What `sealtune init` writes where nobody says otherwise: from the data, the plan room, and the settings."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ..domain.document import Json
from ..errors import SealtuneError
from ..planning import suggest
from ..planning.fit import smallest_card, verdict
from ..planning.forecast import Planned, advice, job_on, planned, whole_of
from ..planning.prices import merged
from ..settings.draft import Draft, Scalar
from .known import Lengths, doubts, labelled, lengths
from .planned import SOME_CARD_MIB
from .told import answered

if TYPE_CHECKING:
    from ..dataset.check import Checked
    from ..settings.values import Settings

LAB_BUDGET = "1.00 USDC"


@dataclass(frozen=True, slots=True)
class Chosen:
    """By the person, or by their silence. `dataset`: as it will stand in the file. "": the plan finds method and budget."""

    dataset: str
    market: str
    model: str
    method: str = ""
    host: str = ""
    budget: str = ""


@dataclass(frozen=True, slots=True)
class Start:
    """Where the training begins, and the plan of it; None where the model cannot be worked out, and then `why` says so."""

    knobs: Mapping[str, Scalar]
    method: str
    run: Planned | None
    sizes: Lengths
    why: str = ""


def likely_model(found: Checked, market: str) -> str:
    """The lab serves one; elsewhere a smaller one will do for labels."""
    if market == "lab":
        from ..lab.up import MODEL

        return MODEL
    return suggest.MODELS["label" if labelled(found) else "long"]


def start(settings: Settings, found: Checked, model: str, method: str) -> Start:
    """For this data and this model. The hub is asked only for a model that is not in the table."""
    from .asked import Asked, shape_of_model

    sizes = lengths(found, model, settings)
    train = found.rows - found.held_out
    knobs: dict[str, Scalar] = {"num_train_epochs": suggest.epochs(train), "max_length": suggest.length(sizes.longest)}
    try:
        shape, weights = shape_of_model(settings, None, Asked(model, None, method or "qlora", {}))
    except SealtuneError as unknown:
        return Start(knobs, method or "qlora", None, sizes, str(unknown))
    knobs = {"learning_rate": suggest.learning_rate(shape.parameters()), **knobs}
    written = _written(knobs)
    method = method or suggest.method(shape, written, SOME_CARD_MIB)
    run = planned(shape, method, written, train, found.held_out, min(sizes.average, int(knobs["max_length"])),
                  found.kind == "messages", weights)
    return Start(knobs, method, run, sizes)


def _written(knobs: Mapping[str, Scalar]) -> tuple[tuple[str, str], ...]:
    return tuple((name, str(value)) for name, value in knobs.items())


def budget(settings: Settings, chosen: Chosen, begin: Start) -> str:
    if chosen.budget or chosen.market == "ssh":
        return chosen.budget
    if chosen.market == "lab":
        return LAB_BUDGET
    dollars = suggest.budget(begin.run, merged(settings.prices)) if begin.run else suggest.FEW_DOLLARS
    return f"{dollars}.00 USDC"


def draft(path: Path, chosen: Chosen, begin: Start, found: Checked) -> Draft:
    fields: dict[str, Scalar] = {"model": chosen.model, "dataset": chosen.dataset, "format": found.structure.format,
                                 "method": begin.method, "market": chosen.market}
    if chosen.market != "ssh":
        fields |= {"hours": "auto", "budget": chosen.budget}
    fields |= {"output": f"./adapters/{path.stem}"}
    card = smallest_card(begin.run.shape, begin.run.how) if begin.run and chosen.market != "ssh" else None
    node: dict[str, Scalar] = {"vram_gib": card.mib // 1000} if card else {}
    return Draft(fields, node, begin.knobs, _server(chosen.host), _why(begin, found))


def _server(named: str) -> dict[str, Scalar]:
    """HOST or USER@HOST; nothing where no server is named."""
    user, _, host = named.rpartition("@")
    return {**({"host": host} if host else {}), **({"user": user} if user else {})}


def _why(begin: Start, found: Checked) -> dict[str, str]:
    train, sizes = found.rows - found.held_out, begin.sizes
    how = "counted" if sizes.counted else "guessed from characters"
    why = {"dataset": f"{found.rows} rows, {found.held_out} of them held out",
           "num_train_epochs": f"for {train} rows by {suggest.EPOCHS_SOURCE}",
           "max_length": f"the longest has about {sizes.longest}, {how}"}
    if begin.run:
        said = begin.run.need()
        why["learning_rate"] = suggest.rate_source(begin.run.shape.parameters())
        why["vram_gib"] = f"the training takes about {said.expected / 2**30:.1f}, at most {said.high / 2**30:.1f}"
        why["budget"] = "twice the hours that the plan expects at most"
    return why


def notes(settings: Settings, market: str, found: Checked, begin: Start) -> list[str]:
    """What the person should know before `sealtune run`."""
    codes, name = doubts(found), found.source.path.name
    said = [f"the rows deserve a look ({', '.join(codes)}): sealtune data check {name}"] if codes else []
    if answered(found)[0]["need"] == "knowledge":
        said.append(f"the rows seem to teach facts, which a training does badly: sealtune advise --dataset {name}")
    if market == "open" and not settings.open:
        said.append("no open market is set up yet: `open:` in settings.yaml, see README")
    if begin.run is None:
        said.append(f"nothing was planned: {begin.why}")
    elif smallest_card(begin.run.shape, begin.run.how) is None:
        said.append(f"no card that is known here holds it; it would fit with {advice(begin.run, SOME_CARD_MIB)}")
    return said


def outlook(begin: Start) -> dict[str, Json] | None:
    """Of the plan: bytes and seconds [low, expected, high] on the smallest card that holds it."""
    if begin.run is None:
        return None
    said, card = begin.run.need(), smallest_card(begin.run.shape, begin.run.how)
    span = whole_of(job_on(begin.run, card), begin.run) if card else None
    return {"memory": [said.low, said.expected, said.high], "card": card.name if card else None,
            "verdict": verdict(said, card.mib) if card else None,
            "seconds": [span.low, span.expected, span.high] if span else None}
