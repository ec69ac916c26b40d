"""Document 1, laptop → node: the training spec. Public by construction: no path, no secret, no row of data."""
from __future__ import annotations

from dataclasses import dataclass, field

from .document import PRIVATE
from .money import Money, Rate
from .names import Digest, Instant, LeaseKey


@dataclass(frozen=True, slots=True)
class BaseModel:
    endpoint: str                        # the hub that serves it
    repo: str
    commit: str                          # 40 hex
    files: tuple[tuple[str, str], ...]   # (name, sha256 hex): safetensors, config, tokenizer
    size: int = 0                        # bytes in all


@dataclass(frozen=True, slots=True)
class CheckpointRule:
    every_seconds: int                   # from the price of lost work, not from steps
    keep: int


@dataclass(frozen=True, slots=True)
class Limits:
    steps: int
    seconds: int                         # hard stop of the job, whatever it does
    artifact_bytes: int                  # cap of any single sealed file
    records: int                         # cap of the record file, lines


@dataclass(frozen=True, slots=True)
class TrainingSpec:
    """schema sealtune/spec/1. Its canonical bytes' digest is in the start intent and in every record file."""

    schema: str
    job_id: str                          # lease key + "/train": a second start with the same id is the first one
    engine: str                          # trl | rehearsal
    method: str                          # lora | qlora
    base: BaseModel
    knobs: tuple[tuple[str, str], ...]   # the field's own names; decimals as strings; sorted
    seed: int
    data: Digest                         # of dataset.age as shipped
    train_rows: int
    held_out_rows: int
    resume: Digest | None                # of checkpoint-in.age, re-sealed to this node
    seal_to: str                         # age recipient of the run; its identity never leaves the laptop
    checkpoints: CheckpointRule
    limits: Limits


@dataclass(frozen=True, slots=True)
class Job:
    job_id: str
    spec: TrainingSpec
    spec_digest: Digest


@dataclass(frozen=True, slots=True)
class Started:
    job_id: str
    boot_id: str
    at: Instant


@dataclass(frozen=True, slots=True)
class DataFile:
    """A dataset as the run file names it."""

    path: str = field(metadata=PRIVATE)
    format: str = "auto"                 # auto, or a name of dataset/formats.py


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """What the data check found, and what is held to it later: the same digest or no run."""

    digest: Digest                       # of the file's bytes
    format: str
    kind: str                            # messages | text
    rows: int
    train: int
    held_out: int
    warnings: tuple[str, ...] = ()
    path: str = field(default="", metadata=PRIVATE)
    split: str = "1"                     # the rule by which rows are held out
    tokens: str = ""                     # how many there are and what is cut, or why that was not counted; one line
    row_tokens: int = 0                  # of a row on average, after the cut; 0: not counted


@dataclass(frozen=True, slots=True)
class Pace:
    """How an own run went: `permille` of the seconds that were expected of its job, on this card."""

    card: str                            # as its offer claimed it
    method: str
    permille: int


@dataclass(frozen=True, slots=True)
class Forecast:
    """What the plan expects of a run: estimates, for people and for `hours: auto`. MiB and seconds, low, expected and high;
    all zero where it cannot be told, and then `why` says so."""

    card: str = ""                       # as the offer claims it; "": nothing is claimed
    card_mib: int = 0
    memory: tuple[int, int, int] = (0, 0, 0)
    verdict: str = ""                    # fits | tight | unlikely | does not fit; "" where one side is not known
    job_seconds: int = 0                 # training and evaluation, expected
    seconds: tuple[int, int, int] = (0, 0, 0)            # everything on the meter
    why: str = ""


@dataclass(frozen=True, slots=True)
class Agreement:
    """What the person confirmed. Nothing later may cost more."""

    market: str
    offer: str                           # one line: GPU, memory, provider
    rate: Rate
    seconds: int                         # in all, at most
    slice_seconds: int                   # how far ahead we pay
    deposit: Money                       # the first one
    fee: Money                           # at most, contained in the deposit
    gas: Money | None
    worst_case: Money
    stranger: bool                       # the operator can read what is being processed
    bounded: bool                        # the deposit is the bound even if this laptop dies
    simulated: bool
    plan: Digest
    where: str = field(default="", metadata=PRIVATE)   # the user's own server; "" on a market
    forecast: Forecast | None = None     # None: nothing was planned


@dataclass(frozen=True, slots=True)
class Deadline:
    """When the node's keeper acts alone: seal, stop, wipe. Absolute; later values win."""

    lease_key: LeaseKey
    until: Instant
    silence_seconds: int
    self_end: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Armed:
    until: Instant                       # read back from the node, not echoed; on our clock
    silence_seconds: int
    node_clock: Instant
