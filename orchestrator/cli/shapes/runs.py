"""Objects of the commands that run, watch, end and audit. See the package for units."""
from __future__ import annotations

from typing import Literal, TypedDict

Verdict = Literal["verified", "incomplete", "contradicted"]
State = Literal["running", "done", "detached", "open", "stopped"]
Held = Literal["in use", "detached", "paused", "leaked", "unknown", "unreadable"]


class Problem(TypedDict):
    """Why a command did not reach its end."""

    message: str
    hint: str | None                     # the next command
    exit_code: int


class Failed(TypedDict):
    """Instead of a command's own object."""

    error: Problem


class Figures(TypedDict):
    exact_match: float | None            # share of held-out rows answered word for word
    loss: float | None


class Evaluation(TypedDict):
    base: Figures
    adapter: Figures


class Money(TypedDict):
    """All leases together. Of a settled run deposit = paid + fee + refunded; until then those three are null."""

    token: str
    deposit: str
    paid: str | None                     # to providers, without the fee
    fee: str | None
    refunded: str | None
    gas_native: str | None


class Stage(TypedDict):
    """A step that was done; `start` lasts until the results are collected."""

    name: str
    seconds: int


class Run(TypedDict):
    run: str
    verdict: Verdict | None              # of the audit; null without a signed report
    evaluation: Evaluation
    money: Money | None                  # null without a market
    stages: list[Stage]
    owed: list[str]                      # SCOPE/THING
    report: str | None                   # paths
    adapter: str | None
    simulated: bool | None               # hardware; null where none was looked at
    error: Problem | None


class RunState(TypedDict):
    run: str
    state: State
    step: str                            # the newest, with its outcome; "" before the first
    words: str                           # the same for people
    at: int | None
    owed: list[str]
    home: str                            # its folder


class Status(TypedDict):
    runs: list[RunState]


class Record(TypedDict):
    """One line of a training's records; `at` by the node's clock."""

    seq: int
    at: int
    kind: Literal["phase", "step", "gpu", "advice", "published", "result", "error", "other"]
    data: dict[str, str]


class OpenLease(TypedDict):
    rental: str                          # RUN/lease-N
    run: str
    state: Held                          # unknown: to this machine; unreadable: its journal
    market: str | None
    lease: str | None
    node: str | None                     # host:port
    since: int | None
    until: int | None                    # paid ahead until
    rate: str                            # for people
    per_hour: str | None
    deposit: str | None
    cost_so_far: str | None
    owed: list[str]
    problem: str | None


class Rentals(TypedDict):
    rentals: list[OpenLease]
    error: Problem | None                # a market that did not answer


class EndedRun(TypedDict):
    run: str
    error: str | None


class Ended(TypedDict):
    ended: list[EndedRun]


class Check(TypedDict):
    number: int
    text: str
    word: Literal["passed", "failed", "not checked", "not applicable"]
    why: str


class Audited(TypedDict):
    verdict: Verdict
    signer: str | None                   # SHA256:… of the key
    simulated: bool
    receipts: list[str]                  # transactions in which the anchor is claimed to stand
    checks: list[Check]
