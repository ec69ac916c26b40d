"""Document 2, node → laptop: progress records. JSON lines, append-only, numbers and fixed words only.

The laptop's copy of the file is the cursor: following resumes at its length. A record is at most 4 KiB,
`seq` counts from 1 without gaps, text comes only from closed lists (an error is a type name and one of our
own file:line). Unknown kinds are kept in the file and not acted upon.
"""
from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .names import Digest, Instant

RECORD_MAX = 4096


class Phase(StrEnum):
    CHECKING = "checking"
    LOADING = "loading"
    TRAINING = "training"
    EVALUATING = "evaluating"            # in the same process: base against adapter
    SEALING = "sealing"
    DONE = "done"


class RecordKind(StrEnum):
    PHASE = "phase"
    STEP = "step"                        # step, of, loss, lr, grad_norm, tok_s … decimals as strings
    GPU = "gpu"                          # memory, utilisation, temperature, power
    ADVICE = "advice"                    # id of the rule and what was done
    PUBLISHED = "published"              # name, bytes, sha256 of a sealed file that is ready to be taken home
    RESULT = "result"                    # evaluation figures
    ERROR = "error"                      # type, file:line, phase
    OTHER = "other"                      # a kind of a later version


@dataclass(frozen=True, slots=True)
class Record:
    seq: int
    at: Instant                          # the node's clock: shown, never computed with
    kind: RecordKind
    data: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        return dict(self.data).get(name, "")


@dataclass(frozen=True, slots=True)
class Published:
    """Names come from our list: checkpoint-<step>.age, adapter.age, evaluation.age."""

    name: str
    size: int
    sha256: Digest


@dataclass(frozen=True, slots=True)
class Arrived:
    """A published file is at home, complete, its digest as announced. Still sealed."""

    file: Published


@dataclass(frozen=True, slots=True)
class Tick:
    """Nothing new. At least one a second, also while the node is away."""

    silent_for: int                      # seconds since the node was last heard


@dataclass(frozen=True, slots=True)
class Finished:
    """How the job ended, from the node's own file; a missing file is LOST, never DONE."""

    how: str                             # done | failed | stopped | deadline | lost
    error: str | None


Seen = Record | Arrived | Tick | Finished
