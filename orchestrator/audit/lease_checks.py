"""The checks over what happened on and with one node: the wipe, its scan, the hardware, the release, the money.

They read the log and the wipe document, so that what came after the report was sealed counts too.
"""
from __future__ import annotations

from ..domain.document import Json
from ..domain.event import ON_NODE, Kind
from ..domain.evidence import Outcome
from .answers import Answer, failed, inapplicable, passed, unchecked
from .case import LeaseCase
from .closing import AMOUNTS
from .report import as_list, word
from .words import given_up

ADOPTED = "rented by another laptop: what lay on its node, and whether its keeper wiped it, nobody here saw"


def was_wiped(lease: LeaseCase) -> Answer:
    rows = lease.rows()
    answer, wipe, end = rows.result("wipe"), rows.done("wipe"), rows.done("end")
    if rows.adopted:
        return unchecked(ADOPTED)
    if not rows.acquired(ON_NODE):
        return inapplicable("nothing of ours was on the node")
    if answer is None or wipe is None:
        waived = rows.waived("wipe")
        return unchecked(given_up(waived) if waived else "no wipe is recorded")
    if answer["outcome"] != Outcome.COMPLETE or answer["leftovers"]:
        return failed(f"{answer['outcome']}, {answer['leftovers']} files left")
    if end and end.public["node_gone"] and end.seq < wipe.seq:
        return failed("recorded after the end of the lease")
    done = f"{answer['files']} files" + (f", kept: {', '.join(answer['kept'])}" if answer["kept"] else "")
    return _sealed_later(lease, answer, done) if wipe.seq >= lease.predicate["events"]["count"] else passed(done)


def _sealed_later(lease: LeaseCase, answer: Json, done: str) -> Answer:
    """A wipe that came after the report was signed is sealed by the closing record, which is signed last."""
    (part,) = [part for part in lease.case.closed()["leases"] if part["scope"] == lease.scope]
    if (part["wiped"] or {}).get("evidence") != answer["evidence"]:
        return failed("done after the report was signed, and the closing record names other evidence")
    return passed(f"{done}; done after the report was signed, the closing record holds its evidence {answer['evidence']}")


def scan_could_see(lease: LeaseCase) -> Answer:
    """The positive control: a file planted under the order's nonce was found, and is not found any more."""
    if lease.rows().adopted:
        return unchecked(ADOPTED)
    if not lease.rows().acquired(ON_NODE):
        return inapplicable("nothing of ours was on the node")
    order, wiped = lease.rows().intent("wipe"), lease.wiped()
    if any(wiped[name] != order[name] for name in ("order_id", "nonce")) or wiped["lease"] != order["lease_key"]:
        return failed("the document answers another order")
    before, after = _scan(wiped, "before"), _scan(wiped, "after")
    if before["decoy_found"] is None:
        return unchecked("no control was planted")
    if not before["decoy_found"]:
        return failed("the scan did not find its control")
    return failed("the control is still there") if after["decoy_found"] else passed()


def scan_found_nothing(lease: LeaseCase) -> Answer:
    if lease.rows().adopted:
        return unchecked(ADOPTED)
    if not lease.rows().acquired(ON_NODE):
        return inapplicable("nothing of ours was on the node")
    wiped, answer = lease.wiped(), lease.rows().result("wipe")
    before, after = _scan(wiped, "before"), _scan(wiped, "after")
    if after["hits"] or answer["hits"]:
        return failed(f"{after['hits']} places hold text of the data")
    if before["hits"]:
        return failed(f"before the wipe, {before['hits']} places held text of the data in plain")
    if not after["patterns"]:
        return unchecked("it looked for nothing")
    return passed() if before["complete"] and after["complete"] else unchecked("it did not get through")


def everything_has_a_row(lease: LeaseCase) -> Answer:
    """What the log says was shipped or came home stands in the wipe's list, by digest, and is gone."""
    if not (made := _made(lease)):
        return inapplicable("nothing was shipped")
    wiped = lease.wiped()
    listed = {str(f["sha256"]).removeprefix("sha256:"): f for f in as_list(wiped, "files")}
    if left := [f["path"] for f in listed.values() if f["outcome"] == "left"]:
        return failed(f"left: {', '.join(left[:3])}")
    missing = [name for name, digest in made.items() if digest.removeprefix("sha256:") not in listed]
    if not missing:
        return passed(f"{len(made)} shipped or made, {wiped['files_total']} removed")
    if wiped["files_not_listed"] or not wiped["files_total"]:
        return unchecked(f"not in its list: {', '.join(missing)}")
    return failed(f"not in its list: {', '.join(missing)}")


def hardware_is_as_claimed(lease: LeaseCase) -> Answer:
    rows = lease.rows()
    claim = (rows.intent("open") or {}).get("claim")
    reports = [r for r in (rows.result("inspect"), rows.result("challenge")) if r]
    words = [(word(c), c["text"]) for r in reports for c in r["checks"]]
    sent = bool(rows.items("ship", Kind.INTENDED))
    if wrong := [text for said, text in words if said == "failed"]:
        return failed(f"data was sent in spite of: {wrong[0]}") if sent else inapplicable(
            f"not as claimed ({wrong[0]}), left before any data was sent")
    if not claim:
        return inapplicable("nothing was claimed")
    if not reports:
        return unchecked("nobody looked") if sent else inapplicable("left before anybody looked")
    if any(r["simulated"] for r in reports):
        return inapplicable("simulated hardware, as the node says itself")
    if open_ := [text for said, text in words if said == "not checked"]:
        return unchecked(f"{len(open_)} of {len(words)} not checked, the first: {open_[0]}")
    return passed(f"trust level: {reports[-1]['trust']}")


def code_is_this_release(lease: LeaseCase) -> Answer:
    """What was sent against what this installation sends. Another release's is no contradiction: releases go on."""
    rows, release = lease.rows(), lease.case.release
    sent, there = rows.intent("install"), rows.result("install")
    if not sent:
        return inapplicable("nothing was installed")
    if there and (there["payload"], there["lock"]) != (sent["digest"], sent["lock"]):
        return failed("the node installed something else than was sent")
    if release is None:
        return unchecked("no installation to compare with")
    if other := release.differs(lease.predicate["tool"], sent["digest"], sent["lock"]):
        return unchecked(f"{other}: an installation of that one can compare them")
    return passed(sent["digest"])


def money_adds_up(lease: LeaseCase) -> Answer:
    rows = lease.rows()
    paid, end = rows.result("settle"), rows.result("end")
    if not paid:
        return unchecked("not settled")
    if len({str(paid[name]["currency"]) for name in AMOUNTS}) != 1:
        return failed("more than one currency")
    deposit, *parts = (paid[name]["units"] for name in AMOUNTS)
    told = f"{' + '.join(f'{n} {name}' for n, name in zip(parts, AMOUNTS[1:], strict=True))}, in base units of the token"
    if any(type(n) is not int or n < 0 for n in (deposit, *parts)) or deposit != sum(parts):
        return failed(f"{deposit} is not {told}")
    if end and end["full_refund"] and (parts[0] or parts[1]):
        return failed("a full refund was promised, and something was paid")
    if _spent(lease) > _confirmed(lease, deposit):
        return failed("more was paid than was confirmed")
    if not paid["final"]:
        return unchecked("the market may still change the figure")
    return passed(f"{deposit} = {told}") if deposit else inapplicable("no money on this market")


# ---- helpers ------------------------------------------------------------------------------------------------


def _scan(wiped: Json, when: str) -> Json:
    return [scan for scan in wiped["scans"] if scan["when"] == when][0]  # noqa: RUF015  IndexError: not shaped as ours


def _made(lease: LeaseCase) -> dict[str, str]:
    """Name and digest of what was put on the node or taken home; sealed checkpoints come and go on the node itself."""
    rows = lease.rows()
    made = {f"{r.deed.item} as shipped": str(r.public["sha256"]) for r in rows.items("ship", Kind.DONE)}
    if there := rows.result("install"):
        made["payload.zip"] = str(there["payload"])
    for row in rows.items("arrived", Kind.NOTED):
        if not row.deed.item.startswith("checkpoint-"):
            made[row.deed.item] = str(row.public["sha256"])
    return made


def _spent(lease: LeaseCase) -> int:
    """Paid and fee over all leases of the run."""
    log = lease.case.log()
    settled = [s for s in (log.of(scope).result("settle") for scope in log.leases()) if s]
    return sum(s["paid"]["units"] + s["fee"]["units"] for s in settled)


def _confirmed(lease: LeaseCase, otherwise: int) -> int:
    """The worst case that the person confirmed; an adopted lease has none."""
    agreed = lease.case.log().of("run").result("agree")
    return int(agreed["worst_case"]["units"]) if agreed else max(otherwise, _spent(lease))
