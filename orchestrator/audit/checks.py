"""The checks over a run: signatures, spelling, the chain of rows, and that every statement is derived from them.

One small function a check; `verify.py` numbers them. None of them asks the network.
"""
from __future__ import annotations

from itertools import pairwise

from ..domain.document import sha256
from ..domain.event import ON_NODE
from .answers import Answer, failed, inapplicable, passed, same, same_layout, unchecked
from .case import Case, LeaseCase, NotMade, Signed
from .closing import SCHEMA, closing
from .log import BadLog, OtherLog
from .report import PREDICATE, STATEMENT, Cover, anchor, report
from .sshsig import BadSignature, PublicKey, verify


def signed_by_trusted(document: Signed | None, trusted: frozenset[PublicKey]) -> Answer:
    if document is None:
        return unchecked("there is none yet")
    if document.signature is None:
        return unchecked(f"there is no {document.name}.sig")
    try:
        key = verify(document.signature, document.data)
    except BadSignature as problem:
        return failed(str(problem))
    if key not in trusted:
        return unchecked(f"signed by {key.fingerprint}, which is not a key that you trust")
    return passed(key.fingerprint)


# ---- the run ------------------------------------------------------------------------------------------------


def closing_is_whole(case: Case) -> Answer:
    if case.closing is None:
        return unchecked("there is none yet")
    if case.closing.tree is None:
        return failed("not JSON in its one spelling")
    return same_layout(case.closing.tree["schema"], SCHEMA)


def log_is_sound(case: Case) -> Answer:
    if case.chain is None:
        return unchecked("there is none yet")
    if isinstance(case.chain, OtherLog):
        return unchecked(f"each follows from the one before, but {case.chain}")
    if isinstance(case.chain, BadLog):
        return failed(str(case.chain))
    back = sum(later.at < earlier.at for earlier, later in pairwise(case.chain.rows))
    return passed(f"{len(case.chain.rows)} rows" + (f", {back} of them dated before the one ahead" if back else ""))


def log_is_complete(case: Case) -> Answer:
    """Also of a log that another release wrote: for this, its rows need not be understood."""
    log = case.chain if isinstance(case.chain, OtherLog) else case.log()
    said = case.closed()["events"]
    if (said["count"], said["head"]) == (log.count, log.head):
        return passed(log.head)
    return failed(f"the closing record is over {said['count']} rows, here are {log.count}, or others")


def closing_is_derived(case: Case) -> Answer:
    tree = case.closed()
    if tree["schema"] != SCHEMA:
        return unchecked(f"of another layout than {SCHEMA}")
    assert case.closing
    return same(case.closing, closing(tree["run"], tree["tool"], case.log()), case.other_release())


def reports_are_all_here(case: Case) -> Answer:
    log = case.log()
    sealed = {s: log.of(s).result("report") for s in log.leases() if log.of(s).result("open") is not None}
    here = {LeaseCase(case, signed).scope for signed in case.reports if signed.tree is not None}
    if strange := sorted(here - sealed.keys()):
        return failed(f"a report of {strange[0]}, which was never rented")
    if missing := [scope for scope in sealed if scope not in here]:
        return unchecked(f"no report of {', '.join(missing)} here")
    return passed(f"{len(sealed)} leases") if sealed else inapplicable("nothing was rented")


def nothing_is_owed(case: Case) -> Answer:
    """Money, nodes and keys. What was waived is not owed any more, and stands in its own check."""
    left = [f"{debt.what} of {debt.scope}" for debt in case.log().owed()]
    return unchecked(f"not given back: {', '.join(left)}") if left else passed()


# ---- a report -----------------------------------------------------------------------------------------------


def report_is_whole(lease: LeaseCase) -> Answer:
    tree = lease.signed.tree
    if tree is None:
        return failed("not JSON in its one spelling")
    if tree["_type"] != STATEMENT:
        return failed(f"not an in-toto statement: {STATEMENT}")
    return same_layout(tree["predicateType"], PREDICATE)


def report_is_of_this_log(lease: LeaseCase) -> Answer:
    said, whole = lease.predicate["events"], lease.case.log()
    rows, covered = whole.of(lease.scope), whole.first(said["count"])
    sealed, ordered = rows.result("report"), rows.intent("report")
    if (len(covered.rows), covered.head) != (said["count"], said["head"]):
        return failed("its rows are not the first ones of this log")
    if not sealed or sealed["digest"] != sha256(lease.signed.data):
        return failed("the log names another report")
    if (ordered["count"], ordered["head"]) != (said["count"], said["head"]):
        return failed("it was ordered over other rows")
    if lease.folder not in ("", lease.scope):
        return failed(f"it is of {lease.scope} and lies in the folder of {lease.folder}")
    if rows.result("open")["key"] != lease.predicate["lease_key"]:
        return failed("it is of another lease")
    if lease.case.closing and lease.case.closed()["run"] != lease.signed.tree["subject"][0]["name"]:
        return failed("the closing record is of another run")
    return passed(f"{said['count']} rows, {sealed['digest']}")


def report_is_derived(lease: LeaseCase) -> Answer:
    """Made again from log and evidence by the function that made it: the same bytes."""
    said, tree = lease.predicate, lease.signed.tree
    if tree["predicateType"] != PREDICATE:
        return unchecked(f"of another layout than {PREDICATE}")
    covered = lease.case.log().first(said["events"]["count"])
    document = None
    if covered.of(lease.scope).result("wipe") and said["wipe"]["problem"] != "missing":
        document = lease.wipe_document()
        if document is None:
            raise NotMade("the wipe's evidence is not here")
    cover = Cover(tree["subject"][0]["name"], said["scope"], said["lease_key"], said["tool"])
    return same(lease.signed, report(cover, covered, document), lease.other_release())


def anchor_is_in_the_end(lease: LeaseCase) -> Answer:
    rows = lease.rows()
    ended, sealed, ordered = rows.intent("end"), rows.result("report"), rows.intent("report")
    if not ended or not rows.result("end"):
        return unchecked("the lease is not ended")
    if not sealed or not ended["anchor"]:
        return unchecked("the end carries no anchor")
    if not anchor(ordered["salt"], sha256(lease.signed.data)) == sealed["anchor"] == ended["anchor"]:
        return failed("the end carries the anchor of another report")
    return passed(sealed["anchor"])


def keys_are_destroyed(lease: LeaseCase) -> Answer:
    rows = lease.rows()
    if not rows.result("keys"):
        return inapplicable("no keys were made")
    if rows.done("destroy"):
        return passed()
    return unchecked("still on the laptop" + (", for the wipe" if rows.acquired(ON_NODE) else ""))
