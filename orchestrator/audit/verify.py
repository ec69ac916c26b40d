"""The audit: numbered checks over the files of a run, offline, by anybody.

Of the run:
 1. the closing record is signed by a trusted key
 2. the closing record is whole: one spelling, a known schema
 3. the log is sound: every row in its one spelling, following from the one before
 4. the log is complete: as many rows as the closing record says, with the same head
 5. the closing record says what the log says: made again, the same bytes
 6. every lease that was rented has its report here, and there is no other
 7. nothing is owed: no lease, deposit, node or key is open

Of each lease's report:
 8. signed by a trusted key
 9. whole: one spelling, a known kind of statement
10. of this log: over its first rows, and the one that the log names
11. says what log and evidence say: made again, the same bytes
12. the node was wiped, completely, before the end of the lease; if only after the report was sealed (an own server that
    was out of reach), the closing record names the evidence
13. the scan could see: it found its control, which is gone now
14. the scan found nothing of the data, and got through
15. everything shipped or made is in the wipe's list
16. the hardware is as claimed
17. payload and lock are those of this release
18. the end of the lease carries the report's salted digest
19. the money adds up: deposit = paid + fee + refunded + credited, within what was confirmed
20. the keys of the lease are destroyed
21. the digest stands on the chain (not looked up here)

A check says passed, failed, not checked (why) or not applicable (why). One failed: contradicted. Otherwise one not
checked: incomplete. Otherwise: verified. What that proves and what not stands in the report's caveats.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from ..domain.evidence import Check
from ..domain.text import clean
from ..errors import EXIT_CONTRADICTED, EXIT_INCOMPLETE
from . import checks, lease_checks
from .answers import made
from .case import Case, LeaseCase, Release, load
from .sshsig import BadSignature, PublicKey, verify


class Verdict(StrEnum):
    VERIFIED = "verified"
    INCOMPLETE = "incomplete"
    CONTRADICTED = "contradicted"

    @property
    def exit_code(self) -> int:
        return {"verified": 0, "incomplete": EXIT_INCOMPLETE, "contradicted": EXIT_CONTRADICTED}[self.value]


@dataclass(frozen=True, slots=True)
class AuditResult:
    verdict: Verdict
    checks: tuple[Check, ...]
    fingerprint: str                     # of the key that signed, trusted or not; "" where no signature fits
    simulated: bool                      # a node said that its hardware is a simulation
    receipts: tuple[str, ...]            # transactions that carry the anchors; an offline audit looks none of them up


def audit(folder: Path, trusted: frozenset[PublicKey], release: Release | None = None) -> AuditResult:
    """Audit a run's folder, or one with files exported from it. BadInput when there is nothing to audit."""
    case = load(folder, trusted, release)
    done = (*_of_the_run(case), *(check for signed in case.reports for check in _of_a_report(LeaseCase(case, signed))))
    return AuditResult(verdict(done), done, _fingerprint(case), _simulated(case), _receipts(case))


def verdict(done: tuple[Check, ...]) -> Verdict:
    if any(c.word == "failed" for c in done):
        return Verdict.CONTRADICTED
    return Verdict.INCOMPLETE if any(c.word == "not checked" for c in done) else Verdict.VERIFIED


def _of_the_run(case: Case) -> Iterator[Check]:
    # 1. the closing record is signed by a trusted key
    yield made(1, "the closing record is signed by a trusted key",
               lambda: checks.signed_by_trusted(case.closing, case.trusted))
    # 2. the closing record is whole
    yield made(2, "the closing record is whole", lambda: checks.closing_is_whole(case))
    # 3. the log is sound
    yield made(3, "every row of the log follows from the one before", lambda: checks.log_is_sound(case))
    # 4. the log is complete
    yield made(4, "the log is the one that was closed", lambda: checks.log_is_complete(case))
    # 5. the closing record says what the log says
    yield made(5, "the closing record says what the log says", lambda: checks.closing_is_derived(case))
    # 6. every lease that was rented has its report here
    yield made(6, "every lease has its report", lambda: checks.reports_are_all_here(case))
    # 7. nothing is owed
    yield made(7, "everything acquired was given back", lambda: checks.nothing_is_owed(case))


def _of_a_report(lease: LeaseCase) -> Iterator[Check]:
    name = lease.signed.name.removesuffix("report.json").rstrip("/") or "report"

    # 8. signed by a trusted key
    yield made(8, f"{name}: signed by a trusted key",
               lambda: checks.signed_by_trusted(lease.signed, lease.case.trusted))
    # 9. whole
    yield made(9, f"{name}: the report is whole", lambda: checks.report_is_whole(lease))
    # 10. of this log
    yield made(10, f"{name}: the report is of this log", lambda: checks.report_is_of_this_log(lease))
    # 11. says what log and evidence say
    yield made(11, f"{name}: the report says what log and evidence say", lambda: checks.report_is_derived(lease))
    # 12. the node was wiped
    yield made(12, f"{name}: the node was wiped before the end", lambda: lease_checks.was_wiped(lease))
    # 13. the scan could see
    yield made(13, f"{name}: the scan found its control, and then no more", lambda: lease_checks.scan_could_see(lease))
    # 14. the scan found nothing of the data
    yield made(14, f"{name}: the scan found nothing of the data", lambda: lease_checks.scan_found_nothing(lease))
    # 15. everything shipped or made is in the wipe's list
    yield made(15, f"{name}: everything shipped or made was wiped", lambda: lease_checks.everything_has_a_row(lease))
    # 16. the hardware is as claimed
    yield made(16, f"{name}: the hardware is as claimed", lambda: lease_checks.hardware_is_as_claimed(lease))
    # 17. payload and lock are those of this release
    yield made(17, f"{name}: payload and lock are this release's", lambda: lease_checks.code_is_this_release(lease))
    # 18. the end of the lease carries the report's salted digest
    yield made(18, f"{name}: the end carries the report's digest", lambda: checks.anchor_is_in_the_end(lease))
    # 19. the money adds up
    yield made(19, f"{name}: the money adds up", lambda: lease_checks.money_adds_up(lease))
    # 20. the keys of the lease are destroyed
    yield made(20, f"{name}: the keys are destroyed", lambda: checks.keys_are_destroyed(lease))


def _fingerprint(case: Case) -> str:
    for signed in filter(None, (*case.reports, case.closing)):
        try:
            return verify(signed.signature or b"", signed.data).fingerprint
        except BadSignature:
            continue
    return ""


def _simulated(case: Case) -> bool:
    trees = [signed.tree for signed in case.reports if isinstance(signed.tree, dict)]
    nodes = [tree["predicate"].get("node") for tree in trees if isinstance(tree.get("predicate"), dict)]
    return any(isinstance(node, dict) and node.get("simulated") is True for node in nodes)


def _receipts(case: Case) -> tuple[str, ...]:
    tree = case.closing.tree if case.closing else None
    leases = tree.get("leases") if isinstance(tree, dict) else None
    ended = [lease.get("ended") for lease in leases if isinstance(lease, dict)] if isinstance(leases, list) else []
    return tuple(clean(e["receipt"]) for e in ended if isinstance(e, dict) and isinstance(e.get("receipt"), str))
