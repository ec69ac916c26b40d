"""Document 2, node → laptop: progress records. JSON lines, append-only, numbers and fixed words only.

The laptop's copy of the file is the cursor: following resumes at its length. A record is at most 4 KiB,
`seq` counts from 1 without gaps, text comes only from closed lists (an error is a type name and one of our
own file:line). Unknown kinds are kept in the file and not acted upon. Whatever the file holds, it is read here, and
what comes out is harmless to show.
"""
from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from .document import Json, parse
from .names import Digest, Instant
from .text import clean

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


KINDS = {kind.value: kind for kind in RecordKind}


@dataclass(frozen=True, slots=True)
class Record:
    seq: int
    at: Instant                          # the node's clock: shown, never computed with
    kind: RecordKind
    data: tuple[tuple[str, str], ...]

    def get(self, name: str) -> str:
        return dict(self.data).get(name, "")


class BadRecords(ValueError):
    """The node's records break the rules of their file. The message holds no word of the node."""


def read_record(line: bytes) -> Record:
    """One line of the file, without its line feed. Every text is made harmless here, once. BadRecords."""
    if len(line) > RECORD_MAX:
        raise BadRecords(f"a record of {len(line)} bytes")
    try:
        tree = parse(line)
    except ValueError as error:
        raise BadRecords("a record that is not JSON") from error
    if not isinstance(tree, dict) or not _plain(tree):
        raise BadRecords("a record of another shape")
    data = tuple(sorted((clean(k, 40), clean(v)) for k, v in tree["data"].items()))
    return Record(tree["seq"], Instant(tree["at"]), KINDS.get(tree["kind"], RecordKind.OTHER), data)


def _plain(tree: dict[str, Json]) -> bool:
    numbers = all(isinstance(tree.get(n), int) and not isinstance(tree[n], bool) and 0 <= tree[n] < 1 << 53
                  for n in ("seq", "at"))
    data = tree.get("data")
    return numbers and isinstance(tree.get("kind"), str) and isinstance(data, dict) and all(
        isinstance(value, str) for value in data.values())


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


@dataclass(frozen=True, slots=True)
class Working:
    """A long verb goes on: what the node is at, how much of it is done. `of` 0: nobody knows. The node's own words."""

    what: str
    done: int
    of: int


Seen = Record | Arrived | Tick | Finished | Working
