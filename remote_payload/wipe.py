"""The wipe: end the job, show that the scan sees, overwrite and remove all that this lease made, look again, say so.

1 stop the job   2 inventory   3 decoy, first scan   4 overwrite, remove   5 public parts   6 second scan   7 document

The plan is on disk before the first file goes, so an interrupted wipe goes on where it stopped, whoever comes; on a disk
that takes nothing more the wipe goes on without plan and decoy, and is partial for that reason alone. The document says
what was done and seen here, and what was not; it never says that nothing was copied before.
"""
from __future__ import annotations

import contextlib
import ctypes
import hashlib
import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remote_payload import public
from remote_payload.frames import Refused, canonical
from remote_payload.overwrite import destroy, files_below, leave_root, memory_scratch, remove_folders
from remote_payload.scan import Scanner, laptop, processes, roots, spellings
from remote_payload.wipe_document import MINOR, pruned_by_the_job, role, size_of, written
from remote_payload.workspace import Tell, Workspace, digest_file, make_folder, plain, read_json, write_atomic

FILES_MAX = 1000                         # rows in the document; the rest is counted
SECONDS_MAX = 86400
SCAN_SECONDS, FURTHER_SECONDS = 600.0, 3.0  # of one scan at most; of it for places that a wipe can be complete without
PLAN, DONE = "wipe.json", "wipe.done"


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
        self.tell(0, 0, "stopping the job")
        job = self._end_job()
        self._take_up(job)
        in_time = self._remove_all()
        parts = self._public_parts() if in_time else []
        _sync(self.place.root)
        after = self._scan("after")
        self.tell(0, 0, "writing the evidence")
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
                self._keep_plan()
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
        self._keep_plan()

    def _keep_plan(self) -> None:
        with contextlib.suppress(OSError):  # a full disk: what is in the way goes all the same
            write_atomic(self.place.private / PLAN, canonical(self.plan))

    def _look_first(self) -> None:
        """The first scan, with a decoy to find: a file like any other, its text given by the laptop's nonce."""
        filler = os.urandom(2048).hex().encode()
        with contextlib.suppress(OSError, Refused):  # a full disk: a decoy that is not there is not found, which is said
            make_folder(self.place.scratch)
            write_atomic(self.place.scratch / "decoy", filler + self.decoy + filler)
        self.plan["planted"] = (self.place.scratch / "decoy").is_file()
        self.plan["before"] = self._scan("before")

    def _row(self, path: Path) -> dict[str, Any]:
        try:
            digest = digest_file(path)
        except OSError:
            digest = ""                  # a link, a pipe, or gone
        shown = self._shown(path)
        return {"path": shown, "role": role(shown), "bytes": size_of(path), "sha256": digest}

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
        for folder in self._folders():
            for path in list(files_below(folder)):
                if path.name in (PLAN, DONE) and path.parent == self.place.private:
                    continue
                if time.monotonic() > self.order.deadline:
                    return False
                self._remove(path)
        for folder in self._folders()[1:]:
            remove_folders(folder)
        return True

    def _remove(self, path: Path) -> None:
        shown = self._shown(path)
        try:
            word = "read back" if destroy(path, self.order.nonce) else "unlinked"
        except OSError:
            return                       # it stands among the leftovers
        self.done[_key(shown)] = word
        with contextlib.suppress(OSError), (self.place.private / DONE).open("a") as notes:
            notes.write(f"{_key(shown)} {word}\n")
        self.tell(len(self.done), max(len(self.done), self.plan["there"]), "wiping files")

    def _public_parts(self) -> list[dict[str, Any]]:
        rows = []
        for part in public.parts(self.place):
            self.tell(0, 0, "checking what may stay")
            kept = part.name in self.order.keep and public.intact(self.place, part)
            files, size = public.measure(part.place) if kept else public.remove(self.place, part, self.tell)
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
                          [path for paths in left_out.values() for path in paths], self.tell)
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
        body = written(self.place, self.plan, {
            "order_id": self.order.order_id, "nonce": self.order.nonce, "outcome": outcome, "public": parts,
            "files": [self._finished(row) for row in self.plan["files"]],
            "leftovers": [self._shown(path) for path in left[:100]]}, after, left)
        kept = [f"{part['name']} {part['digest']}" for part in parts if part["kept"] and part["digest"]]
        return {"outcome": outcome, "files": len(self.done), "leftovers": len(left),
                "decoy_found": before["decoy_found"], "hits": after["hits"], "kept": sorted(kept)[:32],
                "size": len(body), "sha256": "sha256:" + hashlib.sha256(body).hexdigest()}, body

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


def _key(shown: str) -> str:
    """A name without blanks for the notes."""
    return hashlib.sha256(shown.encode()).hexdigest()[:32]


def _lines(path: Path) -> list[str]:
    """The whole notes of a file; the last may have been cut."""
    try:
        text = path.read_text()
    except OSError:
        return []
    return [line for line in text.split("\n") if len(line) > 33]


def _sync(folder: Path) -> None:
    """Asks the file system to write out what it holds back."""
    if folder.is_dir():
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        ctypes.CDLL(None).syncfs(fd)
        os.close(fd)
