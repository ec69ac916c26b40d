"""The wipe's document, schema sealtune/wipe/1: what was there, what was done, what was seen, and what was not done.

Numbers, digests, fixed words and names below our own folder; no place of the node in full, nothing of the data. It must
not do anything to what it describes, nor say more than was observed.
"""
from __future__ import annotations

import platform
import time
from pathlib import Path
from typing import Any

from remote_payload import media
from remote_payload.frames import canonical
from remote_payload.overwrite import SHARED_MEMORY, entries
from remote_payload.records import admit
from remote_payload.scan import processes
from remote_payload.workspace import GET_NAME, Workspace, open_plain, plain

SCHEMA = "sealtune/wipe/1"
DOCUMENT_MAX = 1024 * 1024
RECORDS_MAX = 1 << 28                    # bytes of the record file that are looked through
ROLES = {"payload.zip": "payload", "dataset.age": "data", "checkpoint-in.age": "data", "spec.json": "spec",
         "job.json": "keeper", "lease.json": "keeper", "keeper.json": "keeper", "installed.json": "keeper"}
MINOR = ("part", "scratch", "other")     # listed last, so that they give way first
NOT_DONE = (
    ("trim", "the disk was not told to discard the blocks: that needs rights over the whole device"),
    ("logs", "records of logins and connections belong to the node and were left alone"),
    ("device", "no device was erased or sanitised: that is the operator's to do"),
)


def written(place: Workspace, plan: dict[str, Any], said: dict[str, Any], after: dict[str, Any],
            left: list[Path]) -> bytes:
    """The document's bytes: canonical JSON, at most DOCUMENT_MAX. `said`: what the wipe itself has to say."""
    before = dict(plan["before"])
    held = {"before": before.pop("deleted_open"), "after": after.pop("deleted_open")}
    storage = [media.facts("workspace", place.root if place.root.is_dir() else place.home),
               media.facts("temporary", Path("/tmp")), media.facts("shared memory", SHARED_MEMORY)]  # noqa: S108
    return bounded({
        **said, "schema": SCHEMA, "lease": place.lease, "started": plan["started"], "finished": int(time.time()),
        "job": plan["job"], "files_total": plan["total"], "files_not_listed": plan["total"] - len(plan["files"]),
        "bytes_total": plan["bytes"],
        "inventory": {"before": {"files": plan["there"], "bytes": plan["bytes"]},
                      "after": {"files": len(left), "bytes": sum(map(size_of, left))}},
        "scans": [before, after],
        "decoy": {"planted": plan["planted"], "found": before["decoy_found"], "gone": not after["decoy_found"]},
        "memory": _memory(held), "media": storage, "caveats": media.caveats(storage),
        "not_done": [{"id": name, "why": why} for name, why in NOT_DONE],
        "tool": {"python": platform.python_version(), "protocol": 1}})


def _memory(held: dict[str, int]) -> dict[str, Any]:
    ours, closed = processes()
    gpu = Path("/proc/driver/nvidia").is_dir()
    vram = ("not checked (the job frees it when it ends; nobody looked)" if gpu else "not applicable (no GPU)")
    return {"vram": vram, "swap": media.swap(), "core_pattern": media.core_pattern(),
            "shared_memory": [plain(path.name) for path in entries(SHARED_MEMORY)
                              if path.name.startswith("sealtune-")][:32],
            "processes": {"ours": len(ours), "unreadable": closed}, "deleted_open": held}


def bounded(document: dict[str, Any]) -> bytes:
    """Canonical bytes of at most DOCUMENT_MAX: rows give way, and are counted."""
    body = canonical(document)
    while len(body) > DOCUMENT_MAX:
        document["files"] = document["files"][:len(document["files"]) // 2]
        document["files_not_listed"] = document["files_total"] - len(document["files"])
        body = canonical(document)
    return body


def role(shown: str) -> str:
    """What a file of ours was, by its place."""
    if shown in ROLES:
        return ROLES[shown]
    first, _, name = shown.partition("/")
    if first == "job":
        return {"records.jsonl": "record", "status.json": "record"}.get(
            name, "checkpoint" if name.startswith("checkpoint-") else "result" if name.endswith(".age") else "other")
    return {"parts": "part", "scratch": "decoy" if name == "decoy" else "scratch", "memory": "scratch"}.get(first, "other")


def pruned_by_the_job(place: Workspace, there: set[str]) -> list[dict[str, Any]]:
    """Rows for what the job published and removed again itself: older checkpoints, sealed as everything."""
    rows = {}
    for line in _record_lines(place.records):
        kind, said = admit(line) or ("", {})
        name, size, digest = (said.get(field, "") for field in ("name", "bytes", "sha256"))
        if kind == "published" and GET_NAME.fullmatch(name) and size.isdigit() and digest not in there:
            rows[name, digest] = {
                "path": "job/" + name, "role": role("job/" + name), "bytes": int(size[:18]), "sha256": digest,
                "technique": "unlink", "passes": 0, "readback": False, "outcome": "removed by the job"}
    return list(rows.values())


def _record_lines(path: Path) -> list[bytes]:
    try:
        with open_plain(path) as file:
            return list(file.read(RECORDS_MAX).splitlines())
    except OSError:
        return []


def size_of(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0
