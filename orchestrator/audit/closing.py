"""The closing record of a run: what became of every lease after its report was sealed, over the whole log. Pure.

It is signed after the money is settled, and so it can tell what a report could not: the end, the receipt, the
refund, the salts that tie the reports to what was written into the ends, and the evidence of a wipe that was only
possible after the report was sealed: on the user's own server, which was out of reach when it was left.
"""
from __future__ import annotations

from ..domain.document import Json, canonical
from .log import Log, Scope
from .report import keys_part

SCHEMA = "sealtune/closing/1"
AMOUNTS = ("deposit", "paid", "fee", "refunded", "credited")


def closing(run: str, tool: str, log: Log) -> bytes:
    """Canonical bytes of the record over these rows."""
    return canonical({
        "schema": SCHEMA, "run": run, "tool": tool, "made_at": log.rows[-1].at if log.rows else 0,
        "leases": [lease_part(log.of(scope)) for scope in log.leases()],
        "home_key": keys_part(log.of("run"), "home key"),
        "events": {"count": len(log.rows), "head": log.head},
    })


def lease_part(lease: Scope) -> Json:
    order, sealed = lease.intent("report") or {}, lease.result("report") or {}
    return {
        "scope": lease.name, "left": lease.noted("left"),
        "report": sealed.get("digest"), "salt": order.get("salt"), "anchor": sealed.get("anchor"),
        "signer": sealed.get("signer"),
        "wiped": lease.result("wipe"), "wipe_waived": lease.waived("wipe") or None,
        "ended": ended(lease), "settlement": settlement(lease.result("settle")), "keys": keys_part(lease),
    }


def ended(lease: Scope) -> Json:
    order, end = lease.intent("end"), lease.result("end")
    if not order or not end:
        return None
    return {"reason": order["reason"], "anchor": order["anchor"], **{k: end[k] for k in (
        "at", "by", "receipt", "full_refund", "node_gone")}}


def settlement(paid: Json) -> Json:
    """Amounts as text in base units; None until the market said how it was paid."""
    if not paid:
        return None
    gas = paid["gas"]
    return {"currency": paid["deposit"]["currency"], "final": paid["final"],
            **{name: str(paid[name]["units"]) for name in AMOUNTS},
            "gas": {"units": str(gas["units"]), "currency": gas["currency"]} if gas else None}
