"""How the job stands, read from the files alone, so that any agent can answer at any time.

    job.json       written before the job is started: from then on it counts as started
    status.json    written by the keeper when the job has ended; its absence is never success

A job without status.json whose keeper is gone, or whose machine was started anew, is lost.
"""
from __future__ import annotations

import time

from remote_payload.frames import canonical
from remote_payload.workspace import Workspace, boot_id, read_json, write_atomic

ENDS = ("done", "failed", "stopped", "deadline", "lost")


def begun(place: Workspace) -> dict[str, object] | None:
    """{job_id, boot_id, at} of the job of this lease, or None when none was ever started."""
    return read_json(place.private / "job.json")


def begin(place: Workspace, job_id: str) -> dict[str, object]:
    """Marks the job as started, on disk, before it is."""
    answer: dict[str, object] = {"job_id": job_id, "boot_id": boot_id(), "at": int(time.time())}
    write_atomic(place.private / "job.json", canonical(answer))
    return answer


def withdraw(place: Workspace) -> None:
    """Takes the mark of a job back that could not be started at all."""
    (place.private / "job.json").unlink()


def finish(place: Workspace, how: str, code: int) -> None:
    write_atomic(place.job / "status.json", canonical({"how": how, "rc": code, "at": int(time.time())}))


def ended(place: Workspace, alive: bool) -> str:
    """How the job ended, "" while it runs. `alive`: the keeper that started it answers."""
    said = read_json(place.job / "status.json")
    if said is not None and said.get("how") in ENDS:
        return str(said["how"])
    mark = begun(place) or {}
    return "" if alive and mark.get("boot_id") == boot_id() else "lost"
