"""The wipe: end the job, show that the scan sees, overwrite and remove all that this lease made, look again, say so.

1 stop the job   2 inventory   3 decoy, first scan   4 overwrite, remove   5 public parts   6 second scan   7 document

The plan is on disk before the first file goes, so an interrupted wipe goes on where it stopped, whoever comes. The
document says what was done and seen here, and what was not; it never says that nothing was copied before.
"""
from __future__ import annotations

import ctypes
import hashlib
import json
import os
import platform
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remote_payload import media, public
from remote_payload.frames import canonical
from remote_payload.overwrite import destroy, entries, files_below, leave_root, memory_scratch, remove_folders
from remote_payload.scan import Scanner, laptop, processes, roots, spellings
from remote_payload.workspace import GET_NAME, Tell, Workspace, digest_file, make_folder, plain, read_json, write_atomic

SCHEMA = "sealtune/wipe/1"
FILES_MAX = 1000                         # rows in the document; the rest is counted
DOCUMENT_MAX = 1024 * 1024
SECONDS_MAX = 86400
SCAN_SECONDS, FURTHER_SECONDS = 600.0, 3.0  # of one scan at most; of it for places that a wipe can be complete without
PLAN, DONE = "wipe.json", "wipe.done"
ROLES = {"payload.zip": "payload", "dataset.age": "data", "checkpoint-in.age": "data", "spec.json": "spec",
         "job.json": "keeper", "lease.json": "keeper", "keeper.json": "keeper", "installed.json": "keeper"}
MINOR = ("part", "scratch", "other")     # listed last, so that they give way first
NOT_DONE = (
    ("trim", "the disk was not told to discard the blocks: that needs rights over the whole device"),
    ("logs", "records of logins and connections belong to the node and were left alone"),
    ("device", "no device was erased or sanitised: that is the operator's to do"),
)


class Order:
    """The order as it came, checked. `seconds` bound the whole."""

    def __init__(self, order_id: str, keep: list[str], seconds: int, nonce: str, canaries: list[bytes]) -> None:
        self.order_id, self.keep, self.seconds, self.nonce = order_id, keep, seconds, nonce
        self.canaries = canaries
        self.deadline = time.monotonic() + seconds


class Wipe:
    """One attempt at an order. `tell` reports progress; `end_job` ends the job and says how it stands."""

    def __init__(self, place: Workspace, order: Order, tell: Tell, end_job: Callable[[], dict[str, Any] | None]) -> None:
        self.place, self.order, self.tell, self._end_job = place, order, tell, end_job
        self.patterns = [text for canary in order.canaries for text in spellings(canary)]
        self.decoy = hashlib.sha256(b"sealtune decoy\0" + order.nonce.encode()).hexdigest()[:48].encode()
        self.plan: dict[str, Any] = {}
        self.done: dict[str, str] = {}

    def run(self) -> tuple[dict[str, Any], bytes]:
        """(header of the reply, the document). What stays on disk afterwards is the plan, for `finish`."""
        self.tell(0, 5, "stopping")
        job = self._end_job()
        self._take_up(job)
        self.tell(1, 5, "removing")
        in_time = self._remove_all()
        parts = self._public_parts() if in_time else []
        _sync(self.place.root)
        self.tell(3, 5, "scanning")
        after = self._scan("after")
        self.tell(4, 5, "writing")
        return self._conclude(parts, after, in_time)

    # ---- the plan --------------------------------------------------------------------------------------------

    def _take_up(self, job: dict[str, Any] | None) -> None:
        """Goes on with the plan that lies there, or makes one: decoy, first scan, inventory."""
        known = read_json(self.place.private / PLAN)
        if known is not None:
            self.plan = known
            self.done = dict(line.split(" ", 1) for line in _lines(self.place.private / DONE))
            if not (known["before"]["complete"] and known["before"]["decoy_found"]):
                self._look_first()       # there was no time for it
                write_atomic(self.place.private / PLAN, canonical(self.plan))
            return
        began = self.place.began() or time.time()
        self.plan = {"began": int(began), "started": int(time.time()), "job": job, "scratch": [], "before": None}
        scratch = memory_scratch(began)
        self._look_first()
        rows = [self._row(path) for folder in (self.place.private, *scratch) for path in files_below(folder)]
        rows.sort(key=lambda row: (row["role"] in MINOR, row["path"]))
        pruned = pruned_by_the_job(self.place, {row["sha256"] for row in rows})
        self.plan.update(
            scratch=[path.name for path in scratch], there=len(rows), total=len(rows) + len(pruned),
            bytes=sum(row["bytes"] for row in rows), files=[*pruned, *rows][:FILES_MAX])
        write_atomic(self.place.private / PLAN, canonical(self.plan))

    def _look_first(self) -> None:
        """The first scan, with a decoy to find: a file like any other, its text given by the laptop's nonce."""
        filler = os.urandom(2048).hex().encode()
        make_folder(self.place.scratch)
        write_atomic(self.place.scratch / "decoy", filler + self.decoy + filler)
        self.plan["before"] = self._scan("before")

    def _row(self, path: Path) -> dict[str, Any]:
        facts = path.lstat()
        try:
            digest = digest_file(path)
        except OSError:
            digest = ""                  # a link, a pipe, or gone
        shown = self._shown(path)
        return {"path": shown, "role": role(shown), "bytes": facts.st_size, "sha256": digest}

    def _shown(self, path: Path) -> str:
        if self.place.private in path.parents:
            return plain(str(path.relative_to(self.place.private)))
        return plain("memory/" + path.name)

    # ---- removing ----------------------------------------------------------------------------------------------

    def _folders(self) -> list[Path]:
        shared = memory_scratch(self.plan["began"])
        return [self.place.private, *(path for path in shared if path.name in self.plan["scratch"])]

    def _remove_all(self) -> bool:
        """False when time ran out. Each file that went is noted at once."""
        with (self.place.private / DONE).open("a") as notes:
            for folder in self._folders():
                for path in list(files_below(folder)):
                    if path.name in (PLAN, DONE) and path.parent == self.place.private:
                        continue
                    if time.monotonic() > self.order.deadline:
                        return False
                    self._remove(path, notes)
        for folder in self._folders()[1:]:
            remove_folders(folder)
        return True

    def _remove(self, path: Path, notes: Any) -> None:
        shown, size = self._shown(path), path.lstat().st_size
        try:
            word = "read back" if destroy(path, self.order.nonce) else "unlinked"
        except OSError:
            return                       # it stands among the leftovers
        self.done[_key(shown)] = word
        notes.write(f"{_key(shown)} {word}\n")
        notes.flush()
        self.tell(len(self.done), size, "removing")

    def _public_parts(self) -> list[dict[str, Any]]:
        rows = []
        for part in public.parts(self.place):
            self.tell(2, 5, "checking")
            kept = part.name in self.order.keep and public.intact(self.place, part)
            files, size = public.measure(part.place) if kept else public.remove(self.place, part)
            rows.append({"name": part.name or "unfinished", "kept": kept, "digest": part.digest, "files": files,
                         "bytes": size})
        return rows

    # ---- looking ------------------------------------------------------------------------------------------------

    def _scan(self, when: str) -> dict[str, Any]:
        """Required places first; what time is left goes to the rest of the node's file systems."""
        left = max(1.0, self.order.deadline - time.monotonic())
        seconds = min(SCAN_SECONDS, left * (0.35 if when == "before" else 0.9))
        left_out = {"public weights, checked by digest": [self.place.models] if self.place.models.is_dir() else [],
                    "the laptop itself, in a lab": laptop()}
        scanner = Scanner(self.patterns, self.decoy, self.plan["began"], time.monotonic() + seconds,
                          [path for paths in left_out.values() for path in paths])
        held = scanner.open_files([*processes()[0], os.getpid()])
        further = min(FURTHER_SECONDS, left / 20)
        for root in roots(self.place.home):
            began = time.monotonic()
            scanner.walk(root, SCAN_SECONDS if root.required else further)
            further -= 0 if root.required else time.monotonic() - began
        return {**scanner.row(when), "left_out": [why for why, paths in left_out.items() if paths],
                "deleted_open": held}

    # ---- saying -------------------------------------------------------------------------------------------------

    def _conclude(self, parts: list[dict[str, Any]], after: dict[str, Any], in_time: bool) -> tuple[dict[str, Any], bytes]:
        left = [path for folder in self._folders() for path in files_below(folder) if path.name not in (PLAN, DONE)]
        before = self.plan["before"]
        clean = (not left and after["hits"] == 0 and before["decoy_found"] and not after["decoy_found"]
                 and before["complete"] and after["complete"])
        outcome = "interrupted" if not in_time else "complete" if clean else "partial"
        document = self._document(outcome, parts, after, left)
        body = _bounded(document)
        kept = [f"{part['name']} {part['digest']}" for part in parts if part["kept"] and part["digest"]]
        return {"outcome": outcome, "files": len(self.done), "leftovers": len(left),
                "decoy_found": before["decoy_found"], "hits": after["hits"], "kept": sorted(kept)[:32],
                "size": len(body), "sha256": "sha256:" + hashlib.sha256(body).hexdigest()}, body

    def _document(self, outcome: str, parts: list[dict[str, Any]], after: dict[str, Any],
                  left: list[Path]) -> dict[str, Any]:
        plan, now = self.plan, int(time.time())
        before = dict(plan["before"])
        held = {"before": before.pop("deleted_open"), "after": after.pop("deleted_open")}
        storage = [media.facts("workspace", self.place.root if self.place.root.is_dir() else self.place.home),
                   media.facts("temporary", Path("/tmp")),  # noqa: S108
                   media.facts("shared memory", Path("/dev/shm"))]  # noqa: S108
        return {
            "schema": SCHEMA, "order_id": self.order.order_id, "lease": self.place.lease, "nonce": self.order.nonce,
            "outcome": outcome, "started": plan["started"], "finished": now, "job": plan["job"],
            "files": [self._finished(row) for row in plan["files"]], "files_total": plan["total"],
            "files_not_listed": plan["total"] - len(plan["files"]), "bytes_total": plan["bytes"], "public": parts,
            "inventory": {"before": {"files": plan["there"], "bytes": plan["bytes"]},
                          "after": {"files": len(left), "bytes": sum(map(_size, left))}},
            "leftovers": [self._shown(path) for path in left[:100]], "scans": [before, after],
            "decoy": {"planted": True, "found": before["decoy_found"], "gone": not after["decoy_found"]},
            "memory": _memory(held), "media": storage,
            "not_done": [{"id": name, "why": why} for name, why in NOT_DONE], "caveats": media.caveats(storage),
            "tool": {"python": platform.python_version(), "protocol": 1}}

    def _finished(self, row: dict[str, Any]) -> dict[str, Any]:
        if "outcome" in row:
            return row
        word = self.done.get(_key(row["path"]))
        gone = not (self.place.private / row["path"]).exists() if word is None else True
        outcome = "removed" if word else "removed before a cut" if gone else "left"
        return {**row, "technique": "overwrite" if word == "read back" else "unlink", "passes": int(word == "read back"),
                "readback": word == "read back", "outcome": outcome}


def finish(place: Workspace) -> None:
    """Takes away the plan, the folders and, where nothing public stays, the root: after the document is safe."""
    for name in (PLAN, DONE):
        try:
            destroy(place.private / name)
        except OSError:
            continue                     # seen by whoever asks again
    remove_folders(place.private)
    leave_root(place)


def role(shown: str) -> str:
    """What a file of ours was, by its place."""
    if shown in ROLES:
        return ROLES[shown]
    first, _, name = shown.partition("/")
    if first == "job":
        return {"records.jsonl": "record", "status.json": "record"}.get(
            name, "checkpoint" if name.startswith("checkpoint-") else "result" if name.endswith(".age") else "other")
    return {"parts": "part", "scratch": "decoy" if name == "decoy" else "scratch", "memory": "scratch"}.get(first, "other")


def _size(path: Path) -> int:
    try:
        return path.lstat().st_size
    except OSError:
        return 0


def pruned_by_the_job(place: Workspace, there: set[str]) -> list[dict[str, Any]]:
    """Rows for what the job published and removed again itself: older checkpoints, sealed as everything."""
    rows = {}
    for line in _lines(place.records, 0):
        record = json.loads(line)
        said = record["data"]
        if record["kind"] == "published" and GET_NAME.fullmatch(said.get("name", "")) and said.get("bytes", "").isdigit():
            path = "job/" + said["name"]
            rows[path, said.get("sha256", "")] = {
                "path": path, "role": role(path), "bytes": int(said["bytes"]), "sha256": said.get("sha256", ""),
                "technique": "unlink", "passes": 0, "readback": False, "outcome": "removed by the job"}
    return [row for (_, digest), row in rows.items() if digest not in there]


def _key(shown: str) -> str:
    """A name without blanks for the notes."""
    return hashlib.sha256(shown.encode()).hexdigest()[:32]


def _lines(path: Path, least: int = 33) -> list[str]:
    """The lines of a file of ours that are longer than `least`; the last may have been cut."""
    try:
        text = path.read_text()
    except OSError:
        return []
    return [line for line in text.split("\n") if len(line) > least]


def _sync(folder: Path) -> None:
    """Asks the file system to write out what it holds back."""
    if folder.is_dir():
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        ctypes.CDLL(None).syncfs(fd)
        os.close(fd)


def _memory(held: dict[str, int]) -> dict[str, Any]:
    ours, closed = processes()
    gpu = Path("/proc/driver/nvidia").is_dir()
    vram = ("not checked (the job frees it when it ends; nobody looked)" if gpu else "not applicable (no GPU)")
    return {"vram": vram, "swap": media.swap(), "core_pattern": media.core_pattern(),
            "shared_memory": [plain(path.name) for path in entries(Path("/dev/shm"))  # noqa: S108
                              if path.name.startswith("sealtune-")][:32],
            "processes": {"ours": len(ours), "unreadable": closed}, "deleted_open": held}


def _bounded(document: dict[str, Any]) -> bytes:
    """Canonical bytes of at most DOCUMENT_MAX: rows give way, and are counted."""
    body = canonical(document)
    while len(body) > DOCUMENT_MAX:
        document["files"] = document["files"][:len(document["files"]) // 2]
        document["files_not_listed"] = document["files_total"] - len(document["files"])
        body = canonical(document)
    return body
