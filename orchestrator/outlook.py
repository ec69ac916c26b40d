"""What a run will probably take, worked out before anything is confirmed: the story's way into the plan."""
from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from . import steps
from .domain.lease import Offer
from .domain.training import Agreement, DatasetFacts
from .errors import BadInput
from .house import House
from .ledger import result_of
from .planning.forecast import Planned, advice, planned
from .planning.hours import tokens_in
from .planning.shapes import shape_of
from .task import Task

PACKED, PACKED_FILES = 4, frozenset({".gz", ".zst", ".parquet"})     # text packs to a quarter, roughly


def outlook(house: House, task: Task) -> Planned | None:
    """From the checked data and the model's own config. None for a rehearsal, and for a model that cannot be worked out,
    which then is tried without a plan."""
    data, base = result_of(house, steps.CHECK), result_of(house, steps.MODEL)
    if task.engine == "rehearsal" or data is None or base is None:
        return None
    try:
        shape = shape_of(house.hub.describe(base), task.model)
    except BadInput:
        return None
    return planned(shape, task.method, task.knobs, data.train, data.held_out, row_tokens(data), data.kind == "messages",
                   base.size, task.paces)


def row_tokens(data: DatasetFacts) -> int:
    """As they were counted, else guessed from the size of the file; one that is gone meanwhile is told when it is sealed."""
    if data.row_tokens:
        return data.row_tokens
    path, size = Path(data.path), 0
    with suppress(OSError):
        size = path.stat().st_size
    return tokens_in(size * (PACKED if path.suffix.lower() in PACKED_FILES else 1), data.rows)


def remedy(run: Planned | None, offers: Sequence[Offer]) -> str:
    """What to change where no card on offer is large enough."""
    return advice(run, max((o.claim.vram_mib for o in offers if o.claim), default=0)) if run and offers else ""


def least_mib(agreed: Agreement) -> int:
    """Of GPU memory, for any node of this run."""
    return agreed.forecast.memory[0] if agreed.forecast else 0
