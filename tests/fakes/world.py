"""A small world behind the ports: clock, markets of four kinds, nodes with a keeper, and faults."""
from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.domain.document import Json, digest_of
from orchestrator.domain.event import GENESIS, Event
from orchestrator.domain.evidence import (
    Check,
    HardwareReport,
    Outcome,
    Trust,
    WipeEvidence,
    WipeOrder,
)
from orchestrator.domain.lease import (
    Access,
    Ended,
    Ending,
    Found,
    HardwareClaim,
    Hold,
    Lease,
    LeaseView,
    Offer,
    Order,
    Terms,
    Wish,
)
from orchestrator.domain.money import USDC, Money, Rate, Settlement
from orchestrator.domain.names import Digest, Instant, LeaseId, LeaseKey, Reason
from orchestrator.domain.progress import Arrived, Finished, Published, Seen, Tick
from orchestrator.domain.spool import Installed, Payload, Spool
from orchestrator.domain.training import (
    Armed,
    BaseModel,
    Deadline,
    Job,
    Started,
)
from orchestrator.errors import NodeLost, NoFunds, OfferGone, OutcomeUnknown, Transient, Unreachable
from tests.fakes.budgets import FakeBudgets

T0 = 1_764_500_000
JOB_SECONDS = 7200
CHECKPOINT = 900


class Killed(BaseException):
    pass


@dataclass
class NodeState:
    alive: bool = True
    armed: int | None = None
    silence: int = 0
    heard: int = 0
    files: bool = False
    data: bool = False
    job: str | None = None
    job_started: int = 0
    base_done: int = 0                    # seconds of training already in the checkpoint it resumed from
    stopped_at: int | None = None
    starts: int = 0
    wiped_at: int | None = None
    keeper_fired: bool = False
    data_before_arm: bool = False
    wipe_leftovers: int = 0


@dataclass
class Rental:
    lease: Lease
    kind: str
    order: Order
    funded_until: int | None
    deposit: int
    visible_at: int
    closed_at: int | None = None
    closed_by: str | None = None
    full_refund: bool = False
    settled: bool = False
    node: NodeState = field(default_factory=NodeState)


@dataclass
class World:
    kind: str                             # escrow | custodial | lium | ssh
    signs_only: bool = False              # the wallet is in a browser: a budget pays
    budgets: dict[str, int | None] = field(default_factory=dict)    # what is left; None: closed
    signatures: int = 0
    now: int = T0
    rentals: list[Rental] = field(default_factory=list)
    vault: dict[str, str] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    shelf: dict[str, list[str]] = field(default_factory=dict)   # lease scope -> names at home
    faults: dict[str, int] = field(default_factory=dict)
    log: list[str] = field(default_factory=list)
    tokens: int = 0
    opens: int = 0
    closed_at_row: int = -1
    contact: int = T0
    head: Digest = GENESIS

    def take(self, fault: str) -> bool:
        if self.faults.get(fault, 0) > 0:
            self.faults[fault] -= 1
            return True
        return False

    def pass_time(self, seconds: int) -> None:
        self.now += seconds
        for r in self.rentals:
            n = r.node
            if n.armed and not n.keeper_fired and n.alive and (
                    self.now >= n.armed or self.now - n.heard > n.silence):
                n.keeper_fired = True
                if n.job and n.stopped_at is None:
                    n.stopped_at = min(self.now, n.armed)
                n.data = False
            if r.funded_until and self.now >= r.funded_until and not r.closed_at:
                r.closed_at, r.closed_by = r.funded_until, "expiry"
                n.alive = False


class FakeClock:
    def __init__(self, w: World) -> None: self.w = w
    def now(self) -> Instant: return Instant(self.w.now)
    def sleep(self, seconds: int) -> None: self.w.pass_time(seconds)


class FakeMarket(FakeBudgets):
    def __init__(self, w: World) -> None: self.w = w

    def _rate(self) -> Rate: return Rate(Money(0 if self.w.kind == "ssh" else 450_000, USDC))

    def offers(self, wish: Wish) -> Sequence[Offer]:
        if self.w.take("market down"):
            raise Unreachable("market down")
        own = self.w.kind == "ssh"
        claim = None if own else HardwareClaim("RTX 4090", 1, 24_564)
        return [Offer(self.w.kind, f"offer-{i}", Rate(Money(self._rate().per_hour.units + i * 10_000, USDC)), claim, 86_400,
                      stranger=not own, bounded=self.w.kind == "escrow") for i in range(1 if own else 4)]

    def prepare(self, offer: Offer, terms: Terms) -> Order:
        deposit = offer.rate.ahead(terms.seconds) if self.w.kind == "escrow" else Money(0, USDC)
        if not terms.pay_at_most.covers(offer.rate.ahead(terms.seconds)):
            raise NoFunds("first slice above the budget")
        facts: dict[str, Json] = {"before": [r.lease.lease_id for r in self.w.rentals]}
        return Order(self.w.kind, terms.key, offer.offer_id, offer.claim, offer.rate, terms.seconds, deposit,
                     Instant(self.w.now), Instant(self.w.now + 900), (), facts, terms.funding.key if terms.funding else "")

    def open(self, order: Order) -> Lease:
        self.w.opens += 1
        if self.w.take("offer gone"):
            raise OfferGone("rented by someone else")
        if self.w.take("open lost before"):
            raise OutcomeUnknown("timeout, nothing happened")
        known = self._by_key(order.key)
        if known and self.w.kind in ("escrow", "lium", "ssh"):
            return known.lease            # safe to repeat
        lease = Lease(order.market, order.key, LeaseId(f"id-{len(self.w.rentals)}"), order.rate, Instant(self.w.now))
        self._draw(order.deposit.units)
        funded = self.w.now + order.seconds if self.w.kind in ("escrow", "lium") else None
        self.w.rentals.append(Rental(lease, self.w.kind, order, funded, order.deposit.units,
                                     self.w.now + (40 if self.w.kind == "custodial" else 0)))
        if self.w.take("open answer lost"):
            raise OutcomeUnknown("500, though created")
        return lease

    def find(self, order: Order) -> Lease | None:
        if self.w.take("market down"):
            raise Unreachable("list failed")
        known = self._by_key(order.key)
        if known and self.w.now >= known.visible_at:
            return known.lease
        if self.w.kind == "custodial" and self.w.now < order.placed_at + 120:
            raise Transient("too early to say no", retry_at=Instant(order.placed_at + 120))
        return known.lease if known else None

    def look(self, lease: Lease) -> LeaseView:
        if self.w.take("market down"):
            raise Unreachable("market down")
        r = self._get(lease)
        access = Access("10.0.0.1", 22, "u", ("ed25519 key",), "signed") if self.w.now >= r.lease.opened_at + 30 else None
        end = r.closed_at or self.w.now
        cost = lease.rate.accrued(end - lease.opened_at)
        inspect = Instant(lease.opened_at + 930) if self.w.kind == "escrow" else None
        return LeaseView(Instant(self.w.now), access, Instant(r.funded_until) if r.funded_until else None, inspect, cost,
                         r.closed_by, Instant(lease.opened_at + limit) if (limit := self.w.faults.get("longest")) else None)

    def hold(self, hold: Hold) -> LeaseView:
        if self.w.take("market down"):
            raise Unreachable("market down")
        r = self._get(hold.lease)
        if r.closed_at:
            raise OfferGone("closed")
        if (limit := self.w.faults.get("longest")) and hold.until > hold.lease.opened_at + limit:
            raise OfferGone("beyond the quote")
        if r.funded_until and hold.until > r.funded_until:
            want = hold.lease.rate.ahead(hold.until - hold.lease.opened_at)
            if not hold.total_at_most.covers(want):
                raise NoFunds("above the budget")
            if self.w.kind == "escrow":
                self._draw(want.units - r.deposit)
                r.deposit = want.units
            r.funded_until = hold.until
        return self.look(hold.lease)

    def end(self, ending: Ending) -> Ended:
        if self.w.take("end refused"):
            raise Transient("not yet")
        r = self._get(ending.lease)
        if not r.closed_at:
            r.closed_at, r.closed_by = self.w.now, "renter"
            r.full_refund = (self.w.kind == "escrow" and ending.reason is Reason.HARDWARE
                             and self.w.now <= ending.lease.opened_at + 930)
            if r.node.alive and r.node.files and r.node.wiped_at is None and not self.w.faults.get("wipe partial"):
                self.w.log.append("ended before wiped")
            r.node.alive = r.node.alive and self.w.kind == "ssh"
            self.w.log.append(f"end {ending.lease.lease_id} wiped={r.node.wiped_at is not None}")
        return Ended(Instant(r.closed_at), r.closed_by or "?", "0xtx", r.full_refund, self.w.kind != "ssh")

    def end_many(self, endings: Sequence[Ending]) -> None: self.w.log.append(f"end {len(endings)} at once")

    def settle(self, lease: Lease) -> Settlement:
        r = self._get(lease)
        assert r.closed_at
        r.settled = True
        z = Money(0, USDC)
        cost = z if r.full_refund else lease.rate.accrued(r.closed_at - lease.opened_at)
        if self.w.kind == "escrow":
            return Settlement(Money(r.deposit, USDC), cost, z, Money(r.deposit, USDC) - cost, z, None, True)
        return Settlement(cost, cost, z, z, z, None, True)

    def mine(self) -> Sequence[Found]:
        return [Found(r.lease, self.look(r.lease), f"st-{r.lease.key[:8]}") for r in self.w.rentals if not r.closed_at]

    def _by_key(self, key: LeaseKey) -> Rental | None:
        return next((r for r in self.w.rentals if r.lease.key == key), None)

    def _get(self, lease: Lease) -> Rental:
        return next(r for r in self.w.rentals if r.lease.lease_id == lease.lease_id)


class FakeNode:
    def __init__(self, w: World, key: LeaseKey, patience: int) -> None:
        self.patience, self.due = patience, 0
        self.w, self.r = w, next(r for r in w.rentals if r.lease.key == key)
        self.n = self.r.node

    def _reach(self) -> None:
        for _ in range(max(1, self.patience // 60)):
            if self.n.alive and not self.w.take("node unreachable"):
                self.n.heard = self.w.now
                return
            self.w.pass_time(60)
        raise NodeLost()

    def inspect(self, claim: HardwareClaim | None) -> HardwareReport:
        self._reach()
        self.w.pass_time(10)
        bad = claim is not None and self.w.take("mismatch")
        check = Check(1, "gpu model", not bad if claim else None, "" if claim else "nothing claimed")
        return HardwareReport(Digest("sha256:hw"), Trust.CROSS_CHECKED, (check,), "580.1")

    def challenge(self, claim: HardwareClaim | None) -> HardwareReport:
        self._reach()
        self.w.pass_time(60)
        return HardwareReport(Digest("sha256:ch"), Trust.CHALLENGED, (Check(1, "memory", True),), "580.1")

    def install(self, payload: Payload) -> Installed:
        self._reach()
        if self.n.armed is None:
            self.n.data_before_arm = True
        self.n.files = True
        self.w.pass_time(self.w.faults.pop("slow install", 200))
        return Installed(payload.digest, payload.lock, 200)

    def fetch(self, base: BaseModel) -> Digest:
        self._reach()
        self.w.pass_time(120)
        return digest_of(base)

    def ship(self, spool: Spool) -> Digest:
        self._reach()
        if self.n.armed is None:
            self.n.data_before_arm = True
        self.n.data = True
        self.w.pass_time(60)
        return spool.sha256

    def arm(self, deadline: Deadline) -> Armed:
        self._reach()
        self.n.armed = max(self.n.armed or 0, deadline.until)
        self.n.silence = deadline.silence_seconds
        return Armed(Instant(self.n.armed), self.n.silence, Instant(self.w.now))

    def start(self, job: Job, secret: bytes) -> Started:
        self._reach()
        assert self.n.data
        if self.n.job is None:
            self.n.job, self.n.job_started = job.job_id, self.w.now
            self.n.starts += 1
            if job.spec.resume:
                self.n.base_done = int(str(job.spec.resume).split(":")[1])
        assert self.n.job == job.job_id
        return Started(job.job_id, "boot", Instant(self.n.job_started))

    def _done(self) -> int:
        if self.n.job is None:
            return 0
        return self.n.base_done + (self.n.stopped_at or self.w.now) - self.n.job_started

    def _mirror(self, home: Path) -> Iterator[Published]:
        have = self.w.shelf.setdefault(home.name, [])
        done = min(self._done(), JOB_SECONDS)
        names = [f"checkpoint-{t}.age" for t in range(CHECKPOINT, done + 1, CHECKPOINT)]
        if self.n.stopped_at and done < JOB_SECONDS:
            names.append(f"checkpoint-{done}.age")
        if done >= JOB_SECONDS:
            names.append("adapter.age")
        for name in names:
            if name not in have:
                have.append(name)
                yield Published(name, 1, Digest("sha256:x"))

    def beat(self, deadline: Deadline) -> None: self.due = deadline.until

    def follow(self, job: Job, home: Path) -> Iterator[Seen]:
        silent_since = self.w.now
        while True:
            if self.w.take("laptop sleeps"):
                self.w.pass_time(10_800)
            self.w.pass_time(60)
            if self.w.faults.get("node dies at") and self._done() >= self.w.faults["node dies at"]:
                self.n.alive = False
                self.w.faults["node dies at"] = 0
            if self.w.faults.get("provider ends at") and self._done() >= self.w.faults["provider ends at"]:
                self.r.closed_at, self.r.closed_by, self.n.alive = self.w.now, "provider", False
                self.w.faults["provider ends at"] = 0
            if not self.n.alive or self.w.take("node unreachable"):
                yield Tick(self.w.now - silent_since)
                continue
            silent_since = self.n.heard = self.w.now
            self.n.armed = max(self.n.armed or 0, self.due)
            for p in self._mirror(home):
                yield Arrived(p)
            if self.n.keeper_fired:
                yield Finished("deadline", None)
                return
            if self._done() >= JOB_SECONDS:
                if self.w.take("job fails"):
                    yield Finished("failed", "FloatingPointError train.py:90")
                    return
                yield Finished("done", None)
                return
            yield Tick(0)

    def stop(self, job: Job, home: Path) -> Finished:
        self._reach()
        if self.n.job and self.n.stopped_at is None:
            self.n.stopped_at = self.w.now
        list(self._mirror(home))
        return Finished("stopped", None)

    def wipe(self, order: WipeOrder) -> WipeEvidence:
        self._reach()
        self.w.pass_time(20)
        if self.w.take("wipe cut"):
            self.w.pass_time(30)
        if self.w.take("wipe partial"):
            return WipeEvidence(Digest("sha256:part"), Outcome.PARTIAL, 10, 1, True)
        if self.n.wiped_at is None:
            self.n.wiped_at = self.w.now
        self.n.data = self.n.files = False
        return WipeEvidence(Digest("sha256:wipe"), Outcome.COMPLETE, 10, 0, True)


class FakeNodes:
    def __init__(self, w: World) -> None: self.w = w
    def at(self, access: Access, ssh_key: bytes, lease: LeaseKey, patience: int) -> FakeNode:
        return FakeNode(self.w, lease, patience)

    def close(self) -> None: ...
