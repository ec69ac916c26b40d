"""What an agent does beyond one file: the keeper's start, the base model, the challenge's process, the whole wipe.

Each is a few lines that put the parts together in the order in which a cut does the least harm.
"""
from __future__ import annotations

import json
import os
import subprocess
import time
from typing import Any

from remote_payload import fetch, frames, jobs, link, public, status
from remote_payload import wipe as wiping
from remote_payload.child import PASSED_ON, die_with_parent
from remote_payload.frames import BadFrame, Frame, Refused, canonical
from remote_payload.keeper import LINGER
from remote_payload.launch import launch
from remote_payload.parts import whole
from remote_payload.workspace import Tell, Workspace, alone, plain, read_json, write_atomic

CANARIES_MAX, CANARY_MIN, CANARY_MAX = 16, 8, 256
KEEPABLE = ("environment", "base model")
PROXIES = ("http_proxy", "https_proxy", "no_proxy", "HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "SSL_CERT_FILE",
           "REQUESTS_CA_BUNDLE")


# ---- the keeper ------------------------------------------------------------------------------------------------


def arm(place: Workspace, wanted: dict[str, Any]) -> dict[str, Any]:
    """The keeper's state after it took the target; it is started where none lives."""
    if (place.private / wiping.PLAN).exists():
        raise Refused("bad-request", "this lease is being wiped")
    state = link.ask(place, "hello")
    if state is not None and state.header["finished"]:
        _let_go(place)
        state = None
    if state is None:
        place.create()
        launch(place, wanted["seconds"], wanted["silence"])
    answer = link.ask(place, "arm", wanted)
    if answer is None:
        raise Refused("internal", "the keeper does not answer")
    return answer.header


def _let_go(place: Workspace) -> None:
    """A keeper that only holds the document of a finished wipe makes room."""
    link.ask(place, "bye")
    for _ in range(50):
        if link.ask(place, "hello") is None:
            return
        time.sleep(0.1)


# ---- the environment's children ----------------------------------------------------------------------------------


def payload_command(place: Workspace, word: str) -> list[str]:
    """The environment's Python with the payload. Refused unsuitable when nothing was installed."""
    installed = read_json(place.private / "installed.json") or {}
    python = place.public / str(installed.get("environment", "-")) / "bin" / "python"
    if not python.exists() or not (place.private / "payload.zip").is_file():
        raise Refused("unsuitable", "no environment was installed for this lease")
    return [str(python), "-I", str(place.private / "payload.zip"), word]


def _spawn(place: Workspace, words: list[str]) -> subprocess.Popen[bytes]:
    passed = {name: os.environ[name] for name in (*PASSED_ON, *PROXIES) if name in os.environ}
    inside = {name: str(place.scratch) for name in ("HOME", "TMPDIR", "XDG_CACHE_HOME")}
    try:
        return subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                                cwd=place.scratch, env={"PATH": "/usr/bin:/bin", **passed, **inside}, bufsize=0,
                                start_new_session=True, preexec_fn=die_with_parent)
    except OSError:
        raise Refused("unsuitable", "the environment's python cannot be started") from None


def fetch_base(place: Workspace, base: Any, tell: Tell) -> dict[str, Any]:
    """{digest, bytes} of the base model, complete and checked. Refused: bad-request, digest, unsuitable."""
    if not fetch.sound(base):
        raise Refused("bad-request", "not a table of files of a model")
    digest, commit = fetch.table_digest(base["files"]), base["commit"]
    into, mark = place.models / commit, public.model_mark(place, commit)
    known = public.complete_model(place, commit)
    if known is not None and known.get("digest") != digest:
        public.remove_public_file(mark)  # the same commit with another table: checked file by file
    command = payload_command(place, "fetch")
    size = _run_fetch(place, command, {"base": base, "into": str(into), "cache": str(place.scratch / "hub")}, tell)
    wanted = {name for name, _ in base["files"]}
    for path in list(into.rglob("*")):
        if not path.is_dir() and str(path.relative_to(into)) not in wanted:
            path.unlink()
    write_atomic(mark, canonical(
        {"schema": public.MODEL_SCHEMA, "digest": digest, "bytes": size, "files": base["files"]}))
    return {"digest": digest, "bytes": size}


def _run_fetch(place: Workspace, command: list[str], request: dict[str, Any], tell: Tell) -> int:
    process = _spawn(place, command)
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write(json.dumps(request).encode())
    process.stdin.close()
    last: dict[str, Any] = {}
    for line in iter(lambda: process.stdout.readline(4096), b""):  # type: ignore[union-attr]
        last = _words(line) or last
        if "of" in last:
            tell(whole(last, "done", 1 << 40), whole(last, "of", 1 << 40), "fetching")
    process.stdout.close()
    process.wait()
    if process.returncode == 0 and "bytes" in last:
        return whole(last, "bytes", 1 << 60)
    reason = plain(str(last.get("error", "ended early")), 64)
    raise Refused("digest" if reason == "WrongDigest" else "unsuitable", f"the base model cannot be fetched: {reason}")


def _words(line: bytes) -> dict[str, Any] | None:
    try:
        tree = json.loads(line)
    except ValueError:
        return None
    return tree if isinstance(tree, dict) else None


class Challenge:
    """The child that holds what was filled, from one `fill` to the next or to the end of the connection."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None

    def ask(self, place: Workspace, header: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
        if header.get("stage") == "fill":
            self.end()
            self._process = _spawn(place, payload_command(place, "challenge"))
        if self._process is None:
            raise Refused("bad-request", "nothing was filled yet")
        assert self._process.stdin is not None and self._process.stdout is not None
        try:
            frames.send(self._process.stdin.fileno(), Frame(frames.VERBS["challenge"], header))
            answer = frames.read(frames.taker(self._process.stdout.fileno()), frames.BODY_MAX_DOWN)
        except (OSError, BadFrame):
            answer = None
        if answer is None:
            self.end()
            raise Refused("unsuitable", "the challenge broke off")
        if answer.type == frames.REFUSED:
            raise Refused(str(answer.header.get("code")), str(answer.header.get("detail")))
        return answer.header, bytes(answer.body)

    def end(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            for stream in (self._process.stdin, self._process.stdout):
                if stream is not None:
                    stream.close()
            self._process = None


# ---- the wipe -----------------------------------------------------------------------------------------------------


def order_of(header: dict[str, Any], body: bytes | bytearray) -> wiping.Order:
    order = header.get("order")
    if not isinstance(order, dict):
        raise Refused("bad-request", "not an order")
    name, keep, nonce = (order.get(field) for field in ("order_id", "keep", "nonce"))
    if not isinstance(name, str) or not 0 < len(name) <= 200 or not isinstance(nonce, str) or len(nonce) > 200:
        raise Refused("bad-request", "order_id or nonce is not one that can be")
    if not isinstance(keep, list) or not all(word in KEEPABLE for word in keep):
        raise Refused("bad-request", "keep names what cannot be kept")
    canaries = [line for line in bytes(body).split(b"\n") if line]
    if len(canaries) > CANARIES_MAX or not all(CANARY_MIN <= len(line) <= CANARY_MAX for line in canaries):
        raise Refused("bad-request", "the canaries are not lines of 8 to 256 bytes")
    return wiping.Order(name, keep, min(max(5, whole(order, "seconds", 1 << 40)), wiping.SECONDS_MAX), nonce, canaries)


def keeper_for(place: Workspace, order: wiping.Order) -> None:
    """A wipe has a keeper, which holds the document when everything else is gone. It is started where it died."""
    if link.ask(place, "hello") is None:
        place.create()
        launch(place, order.seconds + LINGER, order.seconds + LINGER)


def wipe(place: Workspace, order: wiping.Order, tell: Tell) -> tuple[dict[str, Any], bytes]:
    """(header, document). A finished order is answered from the keeper's memory, an unfinished one goes on. Where another
    connection is at it, as one that was cut may be, its end is awaited."""
    answer = _from_memory(place, order)
    while answer is None:
        if not place.private.is_dir():   # the other one finished, for another order
            place.create()
        with alone(place.private, order.deadline - time.monotonic(), tell, "another wipe"):
            answer = _from_memory(place, order) or _wipe(place, order, tell)
    return answer


def _wipe(place: Workspace, order: wiping.Order, tell: Tell) -> tuple[dict[str, Any], bytes] | None:
    """None when the folder that we waited for is gone."""
    if not place.private.is_dir():
        return None
    header, document = wiping.Wipe(place, order, tell, lambda: _end_job(place, tell)).run()
    if header["outcome"] == "complete":
        link.ask(place, "wipe", {"order_id": order.order_id, "reply": header}, document)
        wiping.finish(place)
    return header, document


def _from_memory(place: Workspace, order: wiping.Order) -> tuple[dict[str, Any], bytes] | None:
    """The answer to an order that is finished; what its end left lying is taken away."""
    answer = link.ask(place, "wipe", {"order_id": order.order_id})
    if answer is None or not answer.header.get("known"):
        return None
    wiping.finish(place)
    return answer.header["reply"], bytes(answer.body)


def _end_job(place: Workspace, tell: Tell) -> dict[str, Any] | None:
    mark = status.begun(place)
    if mark is None:
        return None
    return {"id": plain(str(mark.get("job_id"))), "how": jobs.end(place, 5, tell)}
