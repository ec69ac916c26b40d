"""What a person wants of a run, and the two ways in which a node is left. Values; standard library only."""
from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .domain.document import PRIVATE
from .domain.lease import Wish
from .domain.money import Money
from .domain.names import Digest, Instant, Reason
from .domain.training import Pace


@dataclass(frozen=True, slots=True)
class Task:
    """The run file, read and checked: what the person wants."""

    dataset: Path
    format: str
    model: str
    revision: str
    engine: str
    method: str
    knobs: tuple[tuple[str, str], ...]
    seed: int
    wish: Wish
    seconds: int | None                  # None: auto
    budget: Money | None
    checkpoint_seconds: int = 900
    patience: int = 600                  # silence of a running job after which its node counts as lost
    silence: int = 43_200                # silence of ours after which the node's keeper acts alone
    paces: tuple[Pace, ...] = ()         # of earlier runs on this machine, which correct the hours that are expected


@dataclass(frozen=True, slots=True)
class Leaving:
    reason: Reason
    evidence: Digest | None = None
    detail: str = field(default="", metadata=PRIVATE)
    offer_id: str = ""                   # an offer that was not even ordered


@dataclass(frozen=True, slots=True)
class Away:
    """The person went away on purpose; until then the lease is paid and needs nobody."""

    until: Instant
