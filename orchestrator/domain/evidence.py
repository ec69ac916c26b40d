"""Document 3, node → laptop: what was measured and what was deleted, and the report made of it.

Big documents are kept as files named by digest; the journal holds the digest and the summary below."""
from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum

from .document import PRIVATE
from .names import Digest, Instant, LeaseKey

NO_GPU = "no GPU: training on the CPU"


class Trust(StrEnum):
    CLAIMED = "claimed"
    CROSS_CHECKED = "cross-checked"
    CHALLENGED = "challenged"
    ATTESTED = "attested"


@dataclass(frozen=True, slots=True)
class Check:
    """One numbered check. `held` None: not made; `why` says why. Where `applies` is False it had no object."""

    number: int
    text: str
    held: bool | None
    why: str = ""
    applies: bool = True

    @property
    def word(self) -> str:
        if not self.applies:
            return "not applicable"
        return {True: "passed", False: "failed", None: "not checked"}[self.held]


@dataclass(frozen=True, slots=True)
class HardwareReport:
    evidence: Digest                     # raw probe outputs, or the challenge's transcript
    trust: Trust
    checks: tuple[Check, ...]
    driver: str                          # "" where there is no GPU
    gpu: str = ""                        # product name as shown; "" where there is none
    compute: str = ""                    # compute capability, "8.9"
    simulated: bool = False              # the node says itself that its hardware is a simulation
    python: str = ""                     # the node's python3, "3.11"
    wheels: tuple[str, ...] = ()         # torch wheels that lie ready on the node

    @property
    def mismatch(self) -> Check | None:
        return next((c for c in self.checks if c.held is False), None)


class Outcome(StrEnum):
    COMPLETE = "complete"
    PARTIAL = "partial"
    INTERRUPTED = "interrupted"


@dataclass(frozen=True, slots=True)
class WipeOrder:
    order_id: str                        # the same id goes on where an interrupted wipe stopped
    lease_key: LeaseKey
    keep: tuple[str, ...]                # public parts that may stay: "environment", "base model"
    until: Instant
    nonce: str                           # for the random read-backs and the decoy
    canaries: tuple[str, ...] = field(default=(), metadata=PRIVATE)   # texts that must not be found


@dataclass(frozen=True, slots=True)
class WipeEvidence:
    evidence: Digest                     # the full document: media, files, memory, scans, not_done, caveats
    outcome: Outcome
    files: int                           # removed
    leftovers: int
    decoy_found: bool | None             # the scan's positive control
    hits: int = 0                        # canaries found
    kept: tuple[str, ...] = ()           # "environment sha256:…"


@dataclass(frozen=True, slots=True)
class ReportOrder:
    """What the report of a lease covers: the run's events so far. The same order gives the same bytes."""

    scope: str
    lease_key: LeaseKey
    count: int
    head: Digest
    salt: str                            # 32 hex; hides the digest that goes on chain until the closing record


@dataclass(frozen=True, slots=True)
class SealedReport:
    digest: Digest                       # of report.json
    anchor: Digest                       # sha256(salt ‖ digest): goes into the end of the lease
    signer: str                          # fingerprint of the key that signed it
