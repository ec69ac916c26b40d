"""The audit: numbered checks over the files of a run, offline, by anybody.

The tables below number them and say of each what is compared with what; 21 is not made here: that the digest stands on
the chain, which an offline audit cannot look up.

Reports outlive releases. What another release made (by its version, or by the payload that it sent) is never
contradicted for that alone: where this one cannot make it again or read it, the check says so and is not made. What two
documents both tell, and tell differently, is a contradiction whoever made them.

A check says passed, failed, not checked (why) or not applicable (why). One failed: contradicted. Otherwise one not
checked: incomplete. Otherwise: verified. What that proves and what not stands in the report's caveats.
"""
from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import StrEnum
from functools import partial
from pathlib import Path

from ..domain.evidence import Check
from ..domain.text import clean
from ..errors import EXIT_CONTRADICTED, EXIT_INCOMPLETE
from . import checks, lease_checks
from .answers import Answer, made
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


OF_A_RUN: tuple[tuple[int, str, Callable[[Case], Answer]], ...] = (
    (1, "the closing record is signed by a key that you trust",
     lambda case: checks.signed_by_trusted(case.closing, case.trusted)),
    (2, "the closing record is whole: one spelling, of a layout known here", checks.closing_is_whole),
    (3, "every row of the log follows from the one before", checks.log_is_sound),
    (4, "the log ends with the row that the closing record names", checks.log_is_complete),
    (5, "the closing record says what the log says: made again from it, the same", checks.closing_is_derived),
    (6, "every lease in the log has its report here, and there is no other", checks.reports_are_all_here),
    (7, "everything that was acquired was given back, by the log", checks.nothing_is_owed),
)
OF_A_REPORT: tuple[tuple[int, str, Callable[[LeaseCase], Answer]], ...] = (
    (8, "signed by a key that you trust", lambda lease: checks.signed_by_trusted(lease.signed, lease.case.trusted)),
    (9, "the report is whole: one spelling, of a layout known here", checks.report_is_whole),
    (10, "the report is the one that this log names, over its first rows", checks.report_is_of_this_log),
    (11, "the report says what log and wipe document say: made again from them, the same", checks.report_is_derived),
    (12, "the node was wiped before the lease ended, by the log", lease_checks.was_wiped),
    (13, "the wipe's scan found the control planted for it, and after the wipe no more", lease_checks.scan_could_see),
    (14, "the wipe's scan found no text of the data, before and after", lease_checks.scan_found_nothing),
    (15, "what was shipped or made, by the log, stands in the wipe's list as removed", lease_checks.everything_has_a_row),
    (16, "the hardware was found to be as the offer claimed", lease_checks.hardware_is_as_claimed),
    (17, "payload and lock are those that this installation sends", lease_checks.code_is_this_release),
    (18, "the end of the lease carries the report's salted digest", checks.anchor_is_in_the_end),
    (19, "the money adds up: deposit = paid + fee + refunded, within what was confirmed", lease_checks.money_adds_up),
    (20, "the keys of the lease were destroyed, by the log", checks.keys_are_destroyed),
)


def _of_the_run(case: Case) -> Iterator[Check]:
    other = case.other_release()
    for number, text, look in OF_A_RUN:
        yield made(number, text, partial(look, case), other)


def _of_a_report(lease: LeaseCase) -> Iterator[Check]:
    other = lease.other_release()
    for number, text, look in OF_A_REPORT:
        yield made(number, f"{lease.folder or 'report'}: {text}", partial(look, lease), other)


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
