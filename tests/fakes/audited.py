"""A finished run as its journal tells it, with a node's wipe document: what the audit room reads. Everything in it
is fixed (times, salts, keys, digests), so that reports made of it are the same bytes for ever."""
from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from cryptography.hazmat.primitives import serialization as form
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from orchestrator.audit.case import Release
from orchestrator.audit.evidence import EvidenceFolder
from orchestrator.audit.notary import Notary
from orchestrator.audit.sshsig import PublicKey, public_key
from orchestrator.domain.document import canonical, encode, sha256
from orchestrator.domain.event import Deed, Event, Kind, head
from orchestrator.domain.evidence import (
    Check,
    HardwareReport,
    Outcome,
    ReportOrder,
    Trust,
    WipeEvidence,
    WipeOrder,
)
from orchestrator.domain.lease import Access, Ended, Ending, HardwareClaim, Lease, LeaseView, Order
from orchestrator.domain.money import USDC, Money, Rate, Settlement
from orchestrator.domain.names import Digest, Instant, LeaseId, LeaseKey, Reason
from orchestrator.domain.progress import Finished, Published
from orchestrator.domain.spool import Adapter, Figures, Installed, Payload, Spool
from orchestrator.domain.training import Agreement, BaseModel, DatasetFacts, Deadline

RUN, START = "contract-clauses-1", 1_800_000_000
SECRET = Ed25519PrivateKey.from_private_bytes(b"k" * 32)
SIGNER: PublicKey = public_key(SECRET)
HOST_KEY = public_key(Ed25519PrivateKey.from_private_bytes(b"h" * 32)).line
RELEASE = Release("0.1.0", sha256(b"payload"), (sha256(b"lock"), sha256(b"another lock")))
CLAIM = HardwareClaim("RTX 4090", 1, 24_564)
NOTHING: dict[str, Any] = {}


def usdc(units: int) -> Money:
    return Money(units, USDC)


def key_of(scope: str) -> LeaseKey:
    return LeaseKey(hashlib.sha256(f"{RUN}/{scope}".encode()).hexdigest())


@dataclass
class Story:
    """Rows in the order of the story. A test changes one value, or leaves a step out, and looks what is said."""

    folder: Path
    events: list[Event] = field(default_factory=list)
    claim: HardwareClaim | None = CLAIM
    checks: tuple[Check, ...] = (Check(1, "one name everywhere", True), Check(2, "video memory", True),
                                 Check(3, "clock", None, "no GPU", applies=False))
    simulated: bool = False
    document: Callable[[dict[str, Any]], dict[str, Any]] = lambda document: document
    answer: Callable[[WipeEvidence], WipeEvidence] = lambda answer: answer
    settlement: Callable[[Settlement], Settlement] = lambda settlement: settlement
    ended: Callable[[Ended], Ended] = lambda ended: ended
    without: frozenset[str] = frozenset()    # steps that did not happen, as "lease-1/wipe"
    twice: bool = False                      # a lease before it, whose node was never reached

    # ---- rows ------------------------------------------------------------------------------------------------

    def add(self, name: str, kind: Kind, value: object, acquires: tuple[str, ...] = (),
            releases: tuple[str, ...] = ()) -> None:
        deed = Deed.parse(name)
        if f"{deed.scope}/{deed.step}" in self.without:
            return
        public, private = encode(value) if not isinstance(value, dict) else (value, {})
        seq = len(self.events)
        self.events.append(Event(seq, head(self.events), Instant(START + seq), deed, kind, acquires, releases,
                                 public, private, f"salt {seq}"))

    def step(self, name: str, intent: object, result: object, acquires: tuple[str, ...] = (),
             releases: tuple[str, ...] = ()) -> None:
        self.add(name, Kind.INTENDED, intent, acquires)
        self.add(name, Kind.DONE, result, acquires, releases)

    def has(self, name: str) -> bool:
        return any(str(e.deed) == name and e.kind is Kind.DONE for e in self.events)

    # ---- the story -------------------------------------------------------------------------------------------

    def told(self) -> Story:
        self.begin()
        if self.twice:
            self.lost("lease-1")
        scope = "lease-2" if self.twice else "lease-1"
        self.forward(scope)
        self.backward(scope)
        self.step("run/forget", NOTHING, NOTHING, releases=("home key",))
        self.notary.close(self.events)
        return self

    def begin(self) -> None:
        self.step("run/check", NOTHING, DatasetFacts(sha256(b"rows"), "messages", "messages", 500, 450, 50))
        base = BaseModel("http://hub.example", "lab/tiny", "c" * 40, (("config.json", "0" * 64),))
        self.step("run/model", NOTHING, base)
        agreed = Agreement("open", "1 x RTX 4090", Rate(usdc(450_000)), 7200, 3600, usdc(450_000), usdc(9_000), None,
                           usdc(900_000), True, True, False, sha256(b"plan"))
        self.step("run/agree", agreed, agreed)
        self.step("run/home key", {"names": [["home", "age"]]}, {"halves": ["age1home"]}, acquires=("home key",))

    def open(self, scope: str) -> None:
        key, rate = key_of(scope), Rate(usdc(450_000))
        self.step(f"{scope}/keys", {"names": [[f"{scope}/ssh", "ssh"], [f"{scope}/data", "age"]]},
                  {"halves": ["ssh-ed25519 AAAA", "age1data"]}, acquires=("keys",))
        order = Order("open", key, "offer-7", self.claim, rate, 3600, usdc(450_000), Instant(START),
                      Instant(START + 600), ("environment",), {"quote": "signed"})
        self.step(f"{scope}/open", order, self.lease(scope), acquires=("lease", "deposit"))
        view = LeaseView(Instant(START), Access("node.example", 2222, "renter", (HOST_KEY,), "signed"),
                         Instant(START + 3600), Instant(START + 900), usdc(0), None)
        self.step(f"{scope}/meet", NOTHING, view)

    def lease(self, scope: str) -> Lease:
        return Lease("open", key_of(scope), LeaseId("0x17"), Rate(usdc(450_000)), Instant(START))

    def arm(self, scope: str) -> None:
        deadline = Deadline(key_of(scope), Instant(START + 3000), 900, ())
        self.step(f"{scope}/arm", deadline, NOTHING, acquires=("keeper",))

    def forward(self, scope: str) -> None:
        self.open(scope)
        self.arm(scope)
        seen = HardwareReport(sha256(b"probes"), Trust.CROSS_CHECKED, self.checks, "580.65", "RTX 4090", "8.9",
                              self.simulated)
        self.step(f"{scope}/inspect", NOTHING, seen)
        self.step(f"{scope}/install", Payload(RELEASE.payload, RELEASE.locks[0], "cpu"),
                  Installed(RELEASE.payload, RELEASE.locks[0], 40), acquires=("files",))
        self.step(f"{scope}/challenge", NOTHING, replace(seen, trust=Trust.CHALLENGED, evidence=sha256(b"transcript")))
        spool = Spool("dataset.age", sha256(b"sealed rows"), 11, (sha256(b"sealed rows"),), "spool")
        self.step(f"{scope}/ship/dataset", spool, {"sha256": spool.sha256}, acquires=("data",))
        job = {"job_id": f"{key_of(scope)}/train", "spec_digest": sha256(b"spec")}
        self.step(f"{scope}/start", job, {"job_id": job["job_id"], "boot_id": "b", "at": START}, acquires=("process",))
        for name in ("checkpoint-10.age", "adapter.age"):
            self.add(f"{scope}/arrived/{name}", Kind.NOTED, Published(name, 5, sha256(name.encode())))
        adapter = Adapter(sha256(b"adapter"), Figures("0.02", "3.1"), Figures("0.98", "0.1"), 50, 28, "out")
        self.step(f"{scope}/collect", NOTHING, adapter)

    def backward(self, scope: str, reason: Reason = Reason.DONE) -> None:
        self.add(f"{scope}/left", Kind.NOTED, {"reason": str(reason), "evidence": None})
        self.step(f"{scope}/stop", NOTHING, Finished("done", None), releases=("process",))
        order = WipeOrder(f"{key_of(scope)}/wipe", key_of(scope), ("environment",), Instant(START + 3600), "ab" * 16,
                          ("canary",))
        document = canonical(self.document(wiped(order, sha256(b"adapter.age"))))
        answer = self.answer(WipeEvidence(self.evidence.keep(document), Outcome.COMPLETE, 4, 0, True, 0,
                                          ("environment sha256:" + "e" * 64,)))
        self.step(f"{scope}/wipe", order, answer, releases=("data", "files", "keeper"))
        self.give_back(scope, reason)

    def give_back(self, scope: str, reason: Reason) -> None:
        self.seal(scope)
        sealed = next((e.public for e in self.events if str(e.deed) == f"{scope}/report" and e.kind is Kind.DONE), None)
        self.step(f"{scope}/end", Ending(self.lease(scope), reason, None, sealed["anchor"] if sealed else None),
                  self.ended(Ended(Instant(START + 900), "renter", "0x" + "7" * 64, False, True)), releases=("lease",))
        paid = Settlement(usdc(450_000), usdc(110_250), usdc(2_250), usdc(337_500), usdc(0), None, True)
        self.step(f"{scope}/settle", self.lease(scope), self.settlement(paid), releases=("deposit",))
        self.step(f"{scope}/destroy", NOTHING, NOTHING, releases=("keys",))

    def seal(self, scope: str) -> None:
        if f"{scope}/report" in self.without:
            return
        order = ReportOrder(scope, key_of(scope), len(self.events), head(self.events), "5a" * 16)
        self.add(f"{scope}/report", Kind.INTENDED, order)
        self.add(f"{scope}/report", Kind.DONE, self.notary.seal(order, self.events))

    def lost(self, scope: str) -> None:
        """A node that was armed and then never answered again."""
        self.open(scope)
        self.arm(scope)
        self.add(f"{scope}/left", Kind.NOTED, {"reason": str(Reason.NODE_LOST), "evidence": None})
        self.seal(scope)
        self.step(f"{scope}/end", Ending(self.lease(scope), Reason.NODE_LOST, None, None),
                  Ended(Instant(START + 900), "renter", None, False, True), releases=("lease",))
        back = Settlement(usdc(450_000), usdc(0), usdc(0), usdc(450_000), usdc(0), None, True)
        self.step(f"{scope}/settle", self.lease(scope), back, releases=("deposit",))
        self.add(f"{scope}/wipe", Kind.WAIVED, "node lost: no answer for 20 s", releases=("data", "files", "keeper"))
        self.step(f"{scope}/destroy", NOTHING, NOTHING, releases=("keys",))

    # ---- where it is written -----------------------------------------------------------------------------------

    @property
    def home(self) -> Path:
        return self.folder / RUN

    @property
    def evidence(self) -> EvidenceFolder:
        return EvidenceFolder(self.home / "evidence")

    @property
    def notary(self) -> Notary:
        key = self.folder / "controller.key"
        if not key.exists():
            key.parent.mkdir(parents=True, exist_ok=True)
            key.write_bytes(SECRET.private_bytes(form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption()))
        return Notary(self.home, key, self.evidence, RELEASE.version)


def wiped(order: WipeOrder, adapter: Digest) -> dict[str, Any]:
    """The node's document, as its program writes it."""
    def gone(path: str, role: str, digest: Digest) -> dict[str, Any]:
        return {"path": path, "role": role, "bytes": 11, "sha256": digest, "technique": "overwrite", "passes": 1,
                "readback": True, "outcome": "removed"}

    def scan(when: str, found: bool) -> dict[str, Any]:
        return {"when": when, "complete": True, "patterns": 3, "decoy_found": found, "hits": 0, "places": [],
                "roots": [{"root": "home", "required": True, "complete": True, "files": 9, "bytes": 99, "skipped": {}}]}

    return {
        "schema": "sealtune/wipe/1", "order_id": order.order_id, "lease": order.lease_key, "nonce": order.nonce,
        "outcome": "complete", "started": START, "finished": START + 2, "job": {"id": "train", "how": "done"},
        "files": [gone("payload.zip", "payload", RELEASE.payload), gone("dataset.age", "data", sha256(b"sealed rows")),
                  gone("job/adapter.age", "result", adapter), gone("scratch/decoy", "decoy", sha256(b"decoy"))],
        "files_total": 4, "files_not_listed": 0, "bytes_total": 44,
        "public": [{"name": "environment", "kept": True, "digest": "sha256:" + "e" * 64, "files": 10, "bytes": 100}],
        "inventory": {"before": {"files": 4, "bytes": 44}, "after": {"files": 0, "bytes": 0}}, "leftovers": [],
        "scans": [scan("before", True), scan("after", False)], "decoy": {"planted": True, "found": True, "gone": True},
        "memory": {"vram": "not applicable (no GPU)", "swap": "none", "core_pattern": "core"},
        "media": [{"what": "workspace", "kind": "ext4", "options": "rw", "cow": False, "discard": False}],
        "not_done": [{"id": "trim", "why": "the disk was not told to discard the blocks"}],
        "caveats": ["operator-snapshot", "memory", "ssd"], "tool": {"python": "3.11.2", "protocol": 1},
    }


