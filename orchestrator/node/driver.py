"""The node as the story knows it (ports.Node, ports.Nodes), over lanes, agent and mirror.

Here refusals become decisions, relative times become instants of our clock, and evidence is kept. It must not speak
frames or open connections itself, and it never raises Transient: waiting has been done in the lane.
"""
from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TypeVar

from ..domain.document import Json, canonical, encode, sha256
from ..domain.evidence import Check, HardwareReport, Outcome, Trust, WipeEvidence, WipeOrder
from ..domain.lease import Access, HardwareClaim
from ..domain.names import Digest, Instant, LeaseKey, Reason
from ..domain.progress import Finished, Seen, Working
from ..domain.spool import Installed, Payload, Spool
from ..domain.text import clean, clean_block
from ..domain.training import Armed, BaseModel, Deadline, Job, Started
from ..errors import LeaveNode, NodeLost, SealtuneError
from ..ports import Clock
from ..second_row import Evidence
from . import challenge, shipping
from .channel import Refusal
from .client import Agent, Wiped
from .connection import Dialer, Pace
from .lane import Lane
from .mirror import Mirror
from .payloads import INSTALLER
from .probes import models, rules, system
from .proving import TEXTS, Proof, prove

UNSUITABLE = ("busy", "no-space", "unsuitable", "python")
FOR_GOOD = ("internal", "bad-request", "digest")
MONTH = 30 * 86400
BEAT_LASTS = 15                          # seconds for which a beat is passed on with every question
INSPECT_SECONDS, CHALLENGE_SECONDS, INSTALL_SECONDS, FETCH_SECONDS = 60, 300, 1800, 7200      # see ports.py
LATER_SECONDS = 600                      # for a wipe that is done after its time
STOP_SECONDS, GRACE = 170, 60            # the rest of 180 is for closing the lines
T = TypeVar("T")
Tell = Callable[[Seen], None]            # hears of long verbs while they go on; never blocks


def nobody(seen: Seen) -> None:
    """Progress that nobody looks at."""


class SshNode:
    """One node over SSH. See ports.Node."""

    def __init__(self, lane: Lane, lease: LeaseKey, archive: bytes, locks: Mapping[str, bytes], evidence: Evidence,
                 clock: Clock, tell: Tell = nobody) -> None:
        self._tell = tell
        self.lane, self._lease, self._archive, self._locks = lane, lease, archive, locks
        self._evidence, self._clock = evidence, clock
        self._variant = ""               # known once installed by this process; "" lets the node use its last one
        self._deadline: tuple[float, Deadline] | None = None
        self._wiped = False

    def _working(self, done: int, of: int, what: str) -> None:
        self._tell(Working(what, done, of))

    # ---- hardware -----------------------------------------------------------------------------------------

    def inspect(self, claim: HardwareClaim | None) -> HardwareReport:
        views = self._views()
        checks = rules.compare(views, claim)
        document = {"schema": "sealtune/probes/1", "at": self._clock.now(), "claim": encode(claim)[0],
                    "probes": {n: {"rc": rc, "text": clean_block(out)} for n, (rc, out) in views.outputs.items()},
                    "checks": _listed(checks)}
        return self._report(views, document, rules.trust(views, checks), checks)

    def challenge(self, claim: HardwareClaim | None) -> HardwareReport:
        views = self._views()
        proof = self._proof()
        if proof is None:
            why = "the node's environment cannot compute it"
            checks: tuple[Check, ...] = tuple(Check(n, t, None, why) for n, t in TEXTS.items() if n != 5)
            checks = (*checks, gpu_check(views, why))
        else:
            checks = proof.checks(gpu_check(views, proof.unmeasured))
        document = {"schema": "sealtune/challenge/1", "at": self._clock.now(), "checks": _listed(checks),
                    "transcript": proof.transcript() if proof else None}
        return self._report(views, document, Trust.CLAIMED, checks)

    def _proof(self) -> Proof | None:
        """None where the node can compute neither size."""
        until = time.monotonic() + CHALLENGE_SECONDS - INSPECT_SECONDS
        for sizes in (challenge.CPU_TASK, challenge.PLAIN_TASK):
            try:
                return self.lane.within(partial(_prove, sizes), until - time.monotonic())
            except Refusal as refusal:
                if refusal.code != "unsuitable":
                    raise decided(refusal) from refusal
        return None

    def _views(self) -> rules.Views:
        return rules.views(self._verb(lambda agent: agent.probe(system.NAMES), INSPECT_SECONDS))

    def _report(self, v: rules.Views, document: Json, trust: Trust, checks: tuple[Check, ...]) -> HardwareReport:
        name = v.gpus[0].name if v.gpus else ""
        model = None if v.simulated else models.find(name)
        return HardwareReport(
            evidence=self._evidence.keep(canonical(document)), trust=trust, checks=checks,
            driver=v.gpu.driver if v.gpu and v.gpus else "", gpu=name, compute=model.compute if model else "",
            simulated=v.simulated, python=v.python.version, wheels=system.wheels(v.output("wheels")))

    # ---- cargo --------------------------------------------------------------------------------------------

    def install(self, payload: Payload) -> Installed:
        lock, uv = self._locks[payload.variant], self._locks[INSTALLER]
        if sha256(lock) != payload.lock or sha256(self._archive) != payload.digest:
            raise LeaveNode(Reason.UNSUITABLE, detail="this release holds another payload than the one agreed on")
        until = time.monotonic() + INSTALL_SECONDS
        self._decide(partial(shipping.ship_bytes, self.lane, "payload.zip", self._archive))
        header = {"payload": payload.digest, "lock": payload.lock, "variant": payload.variant,
                  "uv_lock": sha256(uv), "lock_bytes": len(lock)}
        packages, seconds = self._verb(lambda agent: agent.install(header, lock + uv, self._working),
                                       until - time.monotonic())
        self._variant = payload.variant
        return Installed(payload.digest, payload.lock, seconds, packages)

    def fetch(self, base: BaseModel) -> Digest:
        files = sorted([name, digest] for name, digest in base.files)
        header = {"endpoint": base.endpoint, "repo": base.repo, "commit": base.commit, "files": files}
        answer = self._verb(lambda agent: agent.fetch(header, self._working), FETCH_SECONDS)
        if answer != sha256(canonical(files)):
            raise NodeLost("the node fetched other files of the base model")
        return answer

    def ship(self, spool: Spool) -> Digest:
        return self._decide(partial(shipping.ship, self.lane, spool))

    # ---- jobs ---------------------------------------------------------------------------------------------

    def start(self, job: Job, secret: bytes) -> Started:
        spec = encode(job.spec)[0]
        job_id, boot_id, at = self._verb(lambda agent: agent.start(spec, self._variant, secret), 300)
        if job_id != job.job_id:
            raise NodeLost("the node runs another job")
        return Started(job.job_id, boot_id, Instant(at))

    def follow(self, job: Job, home: Path) -> Iterator[Seen]:
        return Mirror(self.lane, job, home, self._beat).follow()

    def stop(self, job: Job, home: Path) -> Finished:
        until = time.monotonic() + STOP_SECONDS
        try:
            how = self.lane.within(lambda agent: agent.stop(job.job_id, GRACE), 2 * GRACE)
        except Refusal as refusal:
            if refusal.code == "unknown-job":
                return Finished("lost", "the node knows no such job")
            raise decided(refusal) from refusal
        for seen in Mirror(self.lane, job, home, lambda: None).follow(until):
            if isinstance(seen, Finished):
                return Finished(how, seen.error)
        return Finished(how, None)

    # ---- custody ------------------------------------------------------------------------------------------

    def arm(self, deadline: Deadline) -> Armed:
        def arm(agent: Agent) -> tuple[int, int, int]:
            asked = self._relative(deadline)     # when it is sent: the wire knows no absolute time
            return agent.arm(asked["seconds"], asked["silence"], deadline.self_end)
        seconds, silence, clock = self._verb(arm, 60)
        return Armed(Instant(self._clock.now() + seconds), silence, Instant(clock))

    def beat(self, deadline: Deadline) -> None:
        self._deadline = (time.monotonic(), deadline)

    def _beat(self) -> dict[str, int] | None:
        """What the next question to the node carries: the last beat, while it is fresh."""
        if self._deadline is None or time.monotonic() - self._deadline[0] > BEAT_LASTS:
            return None
        return self._relative(self._deadline[1])

    def _relative(self, deadline: Deadline) -> dict[str, int]:
        seconds = min(max(deadline.until - self._clock.now(), 1), MONTH)
        return {"seconds": seconds, "silence": min(max(deadline.silence_seconds, 1), MONTH)}

    def wipe(self, order: WipeOrder) -> WipeEvidence:
        def wipe(agent: Agent) -> Wiped:
            seconds = self._seconds_for(order)
            header = {"order_id": order.order_id, "keep": list(order.keep), "seconds": seconds, "nonce": order.nonce}
            return agent.wipe(header, "\n".join(order.canaries).encode(), seconds, self._working)
        wiped = self._verb(wipe, self._seconds_for(order))
        evidence = _evidence_of(wiped, self._evidence)
        self._wiped = evidence.outcome is Outcome.COMPLETE
        return evidence

    def _seconds_for(self, order: WipeOrder) -> int:
        """Up to the order's end; one that is given again after it (an own server that was out of reach) has a new start."""
        left = order.until - self._clock.now()
        return max(left, 30) if left > 0 else LATER_SECONDS

    def close(self) -> None:
        """End the session. After a complete wipe the keeper hears that its evidence is safe and may go."""
        if self._wiped:
            self._wiped = False
            self.lane.patience = 5
            with contextlib.suppress(SealtuneError, Refusal):   # unheard, the keeper goes by itself a little later
                self.lane.within(_bye, 5)
        self.lane.close()

    # ---- refusals -----------------------------------------------------------------------------------------

    def _verb(self, call: Callable[[Agent], T], seconds: float) -> T:
        return self._decide(lambda: self.lane.within(call, seconds))

    def _decide(self, work: Callable[[], T]) -> T:
        try:
            return work()
        except Refusal as refusal:
            raise decided(refusal) from refusal


class Nodes:
    """Port Nodes: sessions by access and lease. `archive`, `locks`: see Payloads."""

    def __init__(self, archive: bytes, locks: Mapping[str, bytes], evidence: Evidence, clock: Clock,
                 pace: Pace | None = None, handshakes: int = 4, tell: Tell = nobody) -> None:
        self._tell = tell
        self._archive, self._locks, self._evidence, self._clock = archive, locks, evidence, clock
        self._pace, self._gate = pace or Pace(), threading.BoundedSemaphore(handshakes)
        self._sessions: dict[tuple[Access, LeaseKey], SshNode] = {}

    def at(self, access: Access, ssh_key: bytes, lease: LeaseKey, patience: int) -> SshNode:
        self._leave_others(access, lease)
        node = self._sessions.get((access, lease))
        if node is None:
            lane = Lane(Dialer(access, ssh_key, self._gate, self._pace), self._archive, lease, patience)
            node = SshNode(lane, lease, self._archive, self._locks, self._evidence, self._clock, self._tell)
            self._sessions[access, lease] = node
        node.lane.patience = patience
        return node

    def _leave_others(self, access: Access, lease: LeaseKey) -> None:
        """A host serves one lease at a time: an earlier one of ours is left before the next is met."""
        for key in [k for k in self._sessions if k[1] != lease and (k[0].host, k[0].port) == (access.host, access.port)]:
            self._sessions.pop(key).close()

    def close(self) -> None:
        while self._sessions:
            self._sessions.popitem()[1].close()


def _prove(sizes: tuple[int, int, int, int, int], agent: Agent) -> Proof:
    return prove(agent, sizes)


def _bye(agent: Agent) -> None:
    agent.bye()


def gpu_check(v: rules.Views, unmeasured: str) -> Check:
    """Nothing in a challenge of today measures a GPU; the line says whether there was one, and what was not tried."""
    if not v.gpus:
        return Check(5, TEXTS[5], None, "no GPU: VRAM", applies=False)
    if v.simulated:
        return Check(5, TEXTS[5], None, "simulated hardware", applies=False)
    return Check(5, TEXTS[5], None, unmeasured)


def _listed(checks: tuple[Check, ...]) -> list[dict[str, Json]]:
    return [{"number": c.number, "text": c.text, "word": c.word, "why": c.why} for c in checks]


def _evidence_of(wiped: Wiped, evidence: Evidence) -> WipeEvidence:
    try:
        outcome = Outcome(wiped.outcome)
    except ValueError as error:
        raise NodeLost(f"a wipe that ended as {clean(wiped.outcome, 20)!r}") from error
    return WipeEvidence(evidence.keep(wiped.document), outcome, wiped.files, wiped.leftovers, wiped.decoy_found,
                        wiped.hits, wiped.kept)


def decided(refusal: Refusal) -> LeaveNode:
    """What a refusal means for the run."""
    if refusal.code in UNSUITABLE:
        return LeaveNode(Reason.UNSUITABLE, detail=refusal.detail or refusal.code)
    if refusal.code in FOR_GOOD:
        return LeaveNode(Reason.REFUSED, detail=str(refusal))
    return NodeLost(f"the node refused: {refusal}")

