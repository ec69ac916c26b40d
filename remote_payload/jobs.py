"""The job as the agents see it: checked and started through the keeper, followed and read from its files.

A lease has one job. Asking again for the same one gives the same answer; nothing here starts anything by itself.
"""
from __future__ import annotations

import time
from typing import Any

from remote_payload import link, public, status
from remote_payload import records as book
from remote_payload.child import Order
from remote_payload.frames import Refused, canonical
from remote_payload.parts import whole
from remote_payload.workspace import COMMIT, ENVIRONMENT, Tell, Workspace, bare, digest_file, read_json, write_atomic

SECRET_MAX = 4096
WAIT_MAX, GRACE_MAX = 5, 120
BIG = 2**53
POLL = 0.1


def start(place: Workspace, header: dict[str, Any], secret: bytes | bytearray, tell: Tell) -> dict[str, Any]:
    """{job_id, boot_id, at}. Refused: started, digest, unsuitable, bad-request, not-armed."""
    spec = header.get("spec")
    if not isinstance(spec, dict) or not 0 < len(secret) <= SECRET_MAX:
        raise Refused("bad-request", "not a spec and a secret")
    order = order_of(place, spec, header.get("variant", ""))
    mark = status.begun(place)
    if mark is not None:
        return _same_job(mark, order.job_id)
    _check_cargo(place, spec, tell)
    write_atomic(place.private / "spec.json", canonical(spec))
    answer = link.ask(place, "start", order._asdict(), secret)
    if answer is None:
        raise Refused("not-armed", "no keeper watches this lease")
    return _same_job(answer.header, order.job_id)


def _same_job(mark: dict[str, Any], job_id: str) -> dict[str, Any]:
    if mark.get("job_id") != job_id:
        raise Refused("started", "this lease has another job already")
    return {name: mark[name] for name in ("job_id", "boot_id", "at")}


def order_of(place: Workspace, spec: dict[str, Any], variant: Any) -> Order:
    """What the keeper needs of a spec; the trainer checks the rest itself. `variant` "": whatever was installed last."""
    installed = read_json(place.private / "installed.json") or {}
    environment = str(installed.get("environment", ""))
    if not ENVIRONMENT.fullmatch(environment) or not (place.public / environment / public.MARK).is_file():
        raise Refused("unsuitable", "no environment was installed for this lease")
    if variant not in ("", installed.get("variant")):
        raise Refused("unsuitable", "another environment was installed for this lease")
    job_id, engine, base, limits = (spec.get(name) for name in ("job_id", "engine", "base", "limits"))
    if not isinstance(job_id, str) or not 0 < len(job_id) <= 200 or engine not in ("trl", "rehearsal"):
        raise Refused("bad-request", "job_id or engine is not one that can be")
    if not isinstance(base, dict) or not COMMIT.fullmatch(str(base.get("commit"))) or not isinstance(limits, dict):
        raise Refused("bad-request", "base or limits is not one that can be")
    return Order(job_id, "rehearse" if engine == "rehearsal" else "train", environment, base["commit"],
                 spec.get("resume") is not None, whole(limits, "seconds", BIG), whole(limits, "records", BIG),
                 whole(limits, "artifact_bytes", BIG))


def _check_cargo(place: Workspace, spec: dict[str, Any], tell: Tell) -> None:
    """What was shipped is what the spec names."""
    wanted = [("dataset.age", spec.get("data"))]
    if spec.get("resume") is not None:
        wanted.append(("checkpoint-in.age", spec["resume"]))
    for name, digest in wanted:
        path = place.private / name
        if not path.is_file() or digest_file(path, tell) != "sha256:" + bare(digest):
            raise Refused("digest", f"{name} is not the file that the spec names")
    if not (place.private / "payload.zip").is_file():
        raise Refused("digest", "the payload is not here")
    if spec["base"].get("files") and public.complete_model(place, spec["base"]["commit"]) is None:
        raise Refused("bad-request", "the base model was not fetched")


def known(place: Workspace, header: dict[str, Any]) -> None:
    """Refused unless the header names this lease's job."""
    mark = status.begun(place)
    if mark is None or mark.get("job_id") != header.get("job_id"):
        raise Refused("unknown-job", "this lease has no such job")


def alive(place: Workspace) -> bool:
    """Does the keeper live that started the job, and does it run there? A keeper that came later knows of none. One that
    saw the end and could not write it down says "ended": to be asked before status.json is read, never after."""
    state = link.ask(place, "hello")
    return state is not None and state.header["job"] is not None and state.header["job"]["state"] == "running"


def records(place: Workspace, header: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """Whole lines from `offset`, waiting up to `wait` seconds for the first; carries the laptop's beat."""
    known(place, header)
    offset, wait = whole(header, "offset", BIG), whole(header, "wait", WAIT_MAX)
    _beat(place, header.get("beat"))
    until = time.monotonic() + wait
    while True:
        how = status.ended(place, alive=True)
        lines, size = book.read_lines(place, offset)
        if lines or how or time.monotonic() >= until:
            break
        time.sleep(POLL)
    if not lines and not how:            # an end is only told with what was read after it: else the last records were lost
        how = status.ended(place, alive(place))
        lines, size = book.read_lines(place, offset)
    return {"offset": offset + len(lines), "size": size, "state": "ended" if how else "running", "how": how}, lines


def _beat(place: Workspace, beat: Any) -> None:
    """The keeper hears that the laptop lives, and until when. A beat that finds no keeper changes nothing."""
    if beat is None:
        return
    if not isinstance(beat, dict):
        raise Refused("bad-request", "not a beat")
    wanted = {"seconds": whole(beat, "seconds", BIG), "silence": max(1, whole(beat, "silence", BIG))}
    try:
        link.ask(place, "arm", {**wanted, "self_end": None})
    except Refused:
        return                           # it is ending; what it does is seen in the records


def stop(place: Workspace, header: dict[str, Any], tell: Tell) -> str:
    """How the job ended, once it has."""
    known(place, header)
    return end(place, whole(header, "grace", GRACE_MAX), tell)


def end(place: Workspace, grace: int, tell: Tell) -> str:
    """TERM, then after `grace` KILL; the keeper does it and notes how. "" when it does not end."""
    until, began = time.monotonic() + grace + 15, time.monotonic()
    link.ask(place, "stop", {"grace": grace})
    while time.monotonic() < until:
        how = status.ended(place, alive(place))
        if how:
            return how
        tell(int(time.monotonic() - began), grace, "stopping")
        time.sleep(POLL)
    raise Refused("internal", "the job does not end")
