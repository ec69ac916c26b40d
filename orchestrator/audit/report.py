"""The report of one lease, made of the first rows of the log and of the node's wipe document. Pure: the same bytes.

An in-toto statement: its subject is the run, by the digest of the newest row it covers. The predicate's
layout is version 1; what it says is derived here and nowhere else, so an audit makes it again and compares.
"""
from __future__ import annotations

from dataclasses import dataclass

from ..domain.document import Json, canonical, parse, sha256
from ..domain.event import ON_NODE, Kind
from ..domain.evidence import Check, Outcome
from ..domain.hostkey import fingerprint
from . import words
from .log import Log, Scope

STATEMENT = "https://in-toto.io/Statement/v1"
PREDICATE = "urn:sealtune:report:1"
WIPE_SCHEMA = "sealtune/wipe/1"
DEPTH, VALUES = 16, 200_000
MOST_DOCUMENT = 8 * 1024 * 1024          # of a wipe document that is taken into the report; a longer one stays beside it


@dataclass(frozen=True, slots=True)
class Cover:
    """Which report: of what run and lease, by which version of the tool."""

    run: str
    scope: str
    lease_key: str
    tool: str


def report(cover: Cover, log: Log, document: bytes | None) -> bytes:
    """Canonical bytes of the report over exactly these rows. `document`: the wipe's, None where there is none."""
    lease, run = log.of(cover.scope), log.of("run")
    wipe = wipe_part(lease, document)
    predicate = {
        "schema": "sealtune/report/1", "tool": cover.tool, "scope": cover.scope, "lease_key": cover.lease_key,
        "made_at": log.rows[-1].at if log.rows else 0,
        "run": run_part(run, lease), "node": node_part(lease), "job": job_part(lease), "wipe": wipe,
        "keys": keys_part(lease) + keys_part(run, "home key"), "money": money_part(run, lease),
        "technique": "overwriting and destruction of keys", "standard_level_claimed": "none",
        "ce_conditions": words.ce_conditions(), "not_done": not_done(wipe),
        "caveats": words.caveats(*caveat_ids(lease, wipe)),
        "left": lease.noted("left"), "result": result(lease, wipe),
        "events": {"count": len(log.rows), "head": log.head},
    }
    return canonical({
        "_type": STATEMENT, "predicateType": PREDICATE, "predicate": predicate,
        "subject": [{"name": cover.run, "digest": {"sha256": log.head.removeprefix("sha256:")}}],
    })


# ---- its parts ----------------------------------------------------------------------------------------------


def run_part(run: Scope, lease: Scope) -> Json:
    data, base = run.result("check") or {}, run.result("model") or {}
    payload, sealed = lease.intent("install") or {}, lease.intent("ship", "dataset") or {}
    return {
        "payload": payload.get("digest"), "lock": payload.get("lock"), "variant": payload.get("variant"),
        "model": {"repo": base.get("repo"), "commit": base.get("commit")},
        "dataset": {"digest": data.get("digest"), "rows": data.get("rows"), "train": data.get("train"),
                    "held_out": data.get("held_out"), "sealed": sealed.get("sha256")},
    }


def node_part(lease: Scope) -> Json:
    order, met = lease.intent("open") or {}, lease.result("meet") or {}
    access = met.get("access") or {}
    reports = {step: lease.result(step) or {} for step in ("inspect", "challenge")}
    seen, best = reports["inspect"], reports["challenge"] or reports["inspect"]
    return {
        "market": (lease.result("open") or {}).get("market"), "offer": order.get("offer_id"),
        "claim": order.get("claim"),
        "host_keys": [{"key": key, "fingerprint": fingerprint(key)} for key in access.get("host_keys", [])],
        "host_keys_trusted_by": access.get("trust"),
        "trust": best.get("trust", "claimed"), "simulated": any(r.get("simulated", False) for r in reports.values()),
        "gpu": seen.get("gpu", ""), "driver": seen.get("driver", ""), "compute": seen.get("compute", ""),
        "checks": [{"of": step, "number": c["number"], "text": c["text"], "word": word(c), "why": c["why"]}
                   for step, r in reports.items() for c in r.get("checks", [])],
        "evidence": {step: r.get("evidence") for step, r in reports.items()},
    }


def job_part(lease: Scope) -> Json:
    job, home = lease.intent("start") or {}, lease.result("collect") or {}
    return {
        "id": job.get("job_id"), "spec": job.get("spec_digest"), "started_at": (lease.result("start") or {}).get("at"),
        "ended": (lease.result("stop") or {}).get("how"), "adapter": home.get("sha256"),
        "arrived": [r.public for r in lease.items("arrived", Kind.NOTED)],
    }


def wipe_part(lease: Scope, document: bytes | None) -> Json:
    """The order, the node's answer as the journal has it, and its whole document, or why that is not in here."""
    order, answer = lease.intent("wipe"), lease.result("wipe")
    tree, problem = wipe_document(document) if answer else (None, "")
    if answer and document is not None and sha256(document) != answer["evidence"]:
        tree, problem = None, "not the document that the log names"
    return {"ordered": order, "answer": answer, "document": tree, "problem": problem}


def wipe_document(document: bytes | None) -> tuple[Json, str]:
    """(the tree, "") or (None, why not). The node wrote it: bounded, one spelling, nothing that a terminal obeys."""
    if document is None:
        return None, "missing"
    if len(document) > MOST_DOCUMENT:
        return None, "too long to be taken in"
    try:
        tree = parse(document, depth=DEPTH, values=VALUES)
        if canonical(tree) != document:
            return None, "not in its canonical spelling"
    except ValueError:
        return None, "not a JSON document within bounds"
    if not isinstance(tree, dict) or tree.get("schema") != WIPE_SCHEMA:
        return None, f"not a document of {WIPE_SCHEMA}"
    return (tree, "") if printable(tree) else (None, "holds text that is not printable")


def printable(tree: Json) -> bool:
    if isinstance(tree, dict):
        return all(printable(k) and printable(v) for k, v in tree.items())
    if isinstance(tree, list):
        return all(printable(v) for v in tree)
    return not isinstance(tree, str) or tree.isprintable()


def keys_part(scope: Scope, step: str = "keys") -> Json:
    """Public halves of what was made, and whether the private ones were destroyed by then."""
    names, halves = scope.intent(step) or {"names": []}, scope.result(step) or {"halves": []}
    gone = scope.done("destroy" if step == "keys" else "forget")
    return [{"name": name, "kind": kind, "public": half, "destroyed_at": gone.at if gone else None}
            for (name, kind), half in zip(names["names"], halves["halves"], strict=False)]


def money_part(run: Scope, lease: Scope) -> Json:
    """What was agreed and prepaid. What was paid in the end stands in the closing record."""
    order, agreed = lease.intent("open") or {}, run.result("agree") or {}
    rate = (order.get("rate") or (lease.result("open") or {}).get("rate") or {}).get("per_hour")
    return {
        "currency": rate["currency"] if rate else None, "rate_per_hour": units(rate),
        "deposit": units(order.get("deposit")), "seconds": order.get("seconds"),
        "extensions": len(lease.items("hold", Kind.DONE)),
        "confirmed_worst_case": units(agreed.get("worst_case")), "stranger": agreed.get("stranger"),
    }


def not_done(wipe: Json) -> Json:
    said = [{"id": str(e.get("id")), "why": str(e.get("why"))} for e in as_list(wipe["document"], "not_done")]
    if wipe["answer"] is None and wipe["ordered"] is not None:
        said.append({"id": "wipe", "why": "ordered, and no complete answer came"})
    return said


def caveat_ids(lease: Scope, wipe: Json) -> list[str]:
    said = (wipe["document"] or {}).get("caveats")
    ids = [str(e) for e in said] if isinstance(said, list) else []
    if any((lease.result(step) or {}).get("simulated") for step in ("inspect", "challenge")):
        ids.append("simulated")
    if wipe["answer"] is None and (lease.acquired(ON_NODE) or lease.adopted):
        ids.append("not-wiped")
    return ids


def result(lease: Scope, wipe: Json) -> str:
    """complete | partial | interrupted | failed | unknown | nothing to wipe"""
    answer = wipe["answer"]
    if lease.adopted:
        return "unknown"
    if answer is None:
        return "failed" if lease.acquired(ON_NODE) else "nothing to wipe"
    if answer["outcome"] == Outcome.COMPLETE and (answer["leftovers"] or answer["hits"]):
        return str(Outcome.PARTIAL)
    return str(answer["outcome"])


# ---- small words --------------------------------------------------------------------------------------------


def word(check: Json) -> str:
    return Check(check["number"], check["text"], check["held"], check["why"], check["applies"]).word


def units(money: Json) -> str | None:
    """Base units as text: amounts pass what JSON readers elsewhere hold exactly."""
    return str(money["units"]) if money else None


def as_list(tree: Json, name: str) -> list[Json]:
    found = (tree or {}).get(name)
    return [e for e in found if isinstance(e, dict)] if isinstance(found, list) else []


def anchor(salt: str, digest: str) -> str:
    """What goes into the end of the lease: hides the report's digest until the closing record tells the salt."""
    joined = bytes.fromhex(salt) + bytes.fromhex(digest.removeprefix("sha256:"))
    return sha256(joined)
