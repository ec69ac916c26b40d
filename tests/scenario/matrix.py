"""The crash matrix: every scenario of the simulated world, killed or interrupted on both sides of every journal row."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from orchestrator.domain.event import Kind, owed
from orchestrator.domain.lease import Wish
from orchestrator.domain.money import USDC, Money
from orchestrator.domain.names import Reason
from orchestrator.errors import Detached, Interrupted, SealtuneError, StillOwed, StopRun
from orchestrator.rental import release_all, run
from orchestrator.task import Leaving, Task
from tests.fakes.laptop import house
from tests.fakes.world import JOB_SECONDS, Killed, World


def task(cap: int = 5_000_000) -> Task:
    wish = Wish(("RTX 4090",))
    return Task(Path("d.jsonl"), "auto", "org/model", "main", "trl", "lora", (), 1, wish, None, Money(cap, USDC))


def check(w: World, goal: str, cap: int = 5_000_000) -> list[str]:
    """What must hold at the end of every story, whatever happened in between."""
    bad = leases(w, cap)
    left = [o for o in owed(w.events) if not (goal == "end" and o.what == "home key")]
    if left:
        bad.append(f"owed {left}")
    if goal == "adapter" and not any(e.deed.step == "collect" and e.kind is Kind.DONE for e in w.events):
        bad.append("no adapter")
    if goal == "adapter" and w.vault:
        bad.append(f"secrets left {sorted(w.vault)}")
    bad += [f"{key} is still open" for key, units in w.budgets.items() if units is not None]
    if w.closed_at_row != len(w.events):
        bad.append("rows after the closing record")
    prev = "genesis"
    for e in w.events:
        if e.prev != prev:
            bad.append("chain")
        prev = e.digest()
    return bad


def leases(w: World, cap: int) -> list[str]:
    bad = []
    keys = [r.lease.key for r in w.rentals]
    if len(keys) != len(set(keys)):
        bad.append("twin leases under one key")
    for r in w.rentals:
        if not r.closed_at:
            bad.append(f"leaked {r.lease.lease_id}")
        if not r.settled:
            bad.append(f"unsettled {r.lease.lease_id}")
        if r.node.starts > 1:
            bad.append("two starts")
        if r.node.data_before_arm:
            bad.append("something on the node before the dead-man's switch")
        if (r.node.data or r.node.files) and not any(e.kind is Kind.WAIVED for e in w.events):
            bad.append("not wiped and not said")
    if "ended before wiped" in w.log:
        bad.append("ended before wiped")
    paid = sum(r.lease.rate.accrued(r.closed_at - r.lease.opened_at).units for r in w.rentals
               if r.closed_at and not r.full_refund)
    if paid > cap:
        bad.append(f"paid {paid} > {cap}")
    return bad


@dataclass(frozen=True)
class Case:
    name: str
    kind: str
    faults: tuple[tuple[str, int], ...] = ()
    signs_only: bool = False


CASES = [
    *(Case(f"{k} plain", k) for k in ("escrow", "custodial", "lium", "ssh")),
    *(Case(f"{k} {fault}", k, ((fault, 1),)) for k in ("escrow", "custodial", "lium")
      for fault in ("open answer lost", "open lost before")),
    Case("escrow offer gone twice", "escrow", (("offer gone", 2),)),
    Case("escrow mismatch", "escrow", (("mismatch", 1),)),
    Case("custodial mismatch", "custodial", (("mismatch", 1),)),
    Case("escrow slow install", "escrow", (("slow install", 900),)),
    Case("escrow node dies at half", "escrow", (("node dies at", JOB_SECONDS // 2),)),
    Case("custodial node dies at half", "custodial", (("node dies at", JOB_SECONDS // 2),)),
    Case("ssh node unreachable a while", "ssh", (("node unreachable", 6),)),
    Case("escrow provider ends", "escrow", (("provider ends at", 4000),)),
    Case("escrow wipe cut", "escrow", (("wipe cut", 2),)),
    Case("escrow wipe partial then ok", "escrow", (("wipe partial", 1),)),
    Case("escrow wipe partial for ever", "escrow", (("wipe partial", 10_000),)),
    Case("escrow end refused", "escrow", (("end refused", 3),)),
    *(Case(f"{k} laptop sleeps", k, (("laptop sleeps", 1),)) for k in ("escrow", "custodial", "ssh")),
    Case("escrow quote allows 90 min", "escrow", (("longest", 5400),)),
    Case("escrow market down a while", "escrow", (("market down", 5),)),
    *(Case(f"budget {fault or 'plain'}", "escrow", ((fault, count),) if fault else (), signs_only=True)
      for fault, count in (("", 0), ("fund answer lost", 1), ("offer gone", 2), ("mismatch", 1), ("market down", 5),
                           ("node dies at", JOB_SECONDS // 2), ("laptop sleeps", 1), ("open answer lost", 1))),
]
SHORT = ("escrow plain", "budget plain", "ssh plain", "custodial open answer lost", "escrow mismatch")
PLANS = [(Killed, "resume"), (Killed, "end"), (KeyboardInterrupt, "wait"), (KeyboardInterrupt, "stop"),
         (KeyboardInterrupt, "detach")]


def one(case: Case, crash_at: int, when: str, exc: type[BaseException], then: str) -> tuple[World, list[str], int]:
    """Play a case, struck once at row `crash_at`; then go on as `then` says. Returns what is wrong, and the rows written."""
    w = World(case.kind, signs_only=case.signs_only, faults=dict(case.faults))
    fired: list[int] = []

    def crash(phase: str, n: int) -> None:
        if n == crash_at and phase == when and not fired:
            fired.append(1)
            raise exc()

    h = house(w, crash, answer=then if exc is KeyboardInterrupt else "stop")
    goal = "adapter"
    try:
        run(h, task())
    except (Killed, Detached):
        w.pass_time(45)
        if then == "end":
            goal = "end"
            give_up(w)
        else:
            run(house(w), task())
    except Interrupted:
        goal = "end"
    return w, check(w, goal), h.journal.n  # type: ignore[attr-defined]


def give_up(w: World) -> None:
    release_all(house(w), Leaving(Reason.STOPPED))


def strikes(case: Case) -> Iterator[tuple[str, list[str]]]:
    """Every kill and interrupt of one case: (name, what was wrong)."""
    _, bad, rows = one(case, -1, "before", Killed, "resume")
    yield f"{case.name} untouched", bad
    for exc, then in PLANS:
        for at in range(1, rows + 1):
            for when in ("before", "after"):
                yield f"{case.name} {exc.__name__} {when} row {at} then {then}", attempt(case, at, when, exc, then)


def attempt(case: Case, at: int, when: str, exc: type[BaseException], then: str) -> list[str]:
    try:
        return one(case, at, when, exc, then)[1]
    except StillOwed as debt:            # the own server out of reach: rightly exit 3, the debt named
        return [] if case.kind == "ssh" and debt.exit_code == 3 else [str(debt)]
    except StopRun as over:
        return [str(over)]
    except SealtuneError as problem:
        return [f"{type(problem).__name__}: {problem}"]
