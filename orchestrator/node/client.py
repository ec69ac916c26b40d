"""The verbs of the agent as methods: what is asked, what must come back, how long it may take.

Answers are checked here, field by field; what does not fit raises FrameError, which ends the channel like any other
broken rule. It must not reconnect, retry or decide what a refusal means for the run.
"""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from ..domain.document import Json, sha256
from ..domain.names import Digest, LeaseKey
from ..domain.text import clean
from .channel import AgentChannel, Broken, Progress, ignore
from .frames import BODY_MAX_DOWN, Frame, FrameError, Verb, number, take

PROTOCOL = 1
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
ENDS = ("done", "failed", "stopped", "deadline", "lost")


@dataclass(frozen=True, slots=True)
class Hello:
    python: str
    boot_id: str
    clock: int
    keeper: bool


@dataclass(frozen=True, slots=True)
class Block:
    """Whole lines of the record file. `how` is "" while the job runs. `complete`: nothing more is there just now."""

    lines: bytes
    offset: int
    how: str
    complete: bool


@dataclass(frozen=True, slots=True)
class Wiped:
    outcome: str
    files: int
    leftovers: int
    decoy_found: bool | None
    hits: int
    kept: tuple[str, ...]
    document: bytes


class Agent:
    """A channel whose agent has answered `hello` for our lease."""

    def __init__(self, channel: AgentChannel, lease: LeaseKey) -> None:
        self.channel = channel
        said = self._ask(Verb.HELLO, {"protocol": PROTOCOL, "lease": lease}, seconds=30).header
        if number(said, "protocol") != PROTOCOL:
            raise FrameError("another protocol")
        self.hello = Hello(clean(take(said, "python", str), 20), clean(take(said, "boot_id", str), 64),
                           number(said, "clock"), said.get("keeper") is not None)

    def _ask(self, verb: Verb, header: Mapping[str, Json], body: bytes = b"", seconds: float = 60,
             progress: Progress = ignore) -> Frame:
        return self.channel.ask(verb, header, body, seconds, progress)

    def arm(self, seconds: int, silence: int, self_end: Sequence[str]) -> tuple[int, int, int]:
        """(seconds left as set, silence, the node's clock)."""
        said = self._ask(Verb.ARM, {"seconds": seconds, "silence": silence, "self_end": list(self_end)}).header
        return number(said, "seconds"), number(said, "silence"), number(said, "clock")

    def probe(self, names: Sequence[str]) -> dict[str, tuple[int, bytes]]:
        """(rc, output) by name; rc 127: not there."""
        return probe(self.channel, names)

    def parts(self, name: str, size: int, parts: int, first: int, digests: Sequence[Digest]) -> set[int]:
        """Which of these parts lie there already, whole."""
        asked = {"name": name, "size": size, "parts": parts, "first": first, "digests": list(digests)}
        have = take(self._ask(Verb.PARTS, asked, seconds=300).header, "have", list)
        return {index for index in have if isinstance(index, int) and first <= index < first + len(digests)}

    def put(self, name: str, index: int, part: bytes) -> None:
        digest = sha256(part)
        said = self._ask(Verb.PUT, {"name": name, "index": index, "sha256": digest}, part, seconds=3600).header
        if said.get("sha256") != digest or said.get("index") != index:
            raise FrameError("another part was acknowledged")

    def close(self, name: str, whole: Digest, size: int) -> Digest:
        """The node's digest of the whole file."""
        return digest(self._ask(Verb.CLOSE, {"name": name, "sha256": whole, "size": size}, seconds=900).header, "sha256")

    def discard(self, name: str) -> None:
        self._ask(Verb.DISCARD, {"name": name})

    def install(self, header: Mapping[str, Json], locks: bytes, progress: Progress) -> tuple[int, int]:
        """(packages, seconds)."""
        said = self._ask(Verb.INSTALL, header, locks, 1800, progress).header
        return number(said, "packages"), number(said, "seconds")

    def fetch(self, base: Mapping[str, Json], progress: Progress) -> Digest:
        return digest(self._ask(Verb.FETCH, {"base": base}, b"", 7200, progress).header, "digest")

    def challenge(self, header: Mapping[str, Json], seconds: float = 300) -> Frame:
        return self._ask(Verb.CHALLENGE, header, seconds=seconds)

    def start(self, spec: Json, variant: str, secret: bytes) -> tuple[str, str, int]:
        """(job id, boot id, node's clock)."""
        said = self._ask(Verb.START, {"spec": spec, "variant": variant}, secret, 60).header
        return take(said, "job_id", str), clean(take(said, "boot_id", str), 64), number(said, "at")

    def records(self, job_id: str, offset: int, wait: int, beat: Mapping[str, int] | None) -> Block:
        asked = {"job_id": job_id, "offset": offset, "wait": wait, "beat": beat}
        reply = self._ask(Verb.RECORDS, asked, seconds=60)
        after, size = number(reply.header, "offset"), number(reply.header, "size")
        if after != offset + len(reply.body):
            raise FrameError("records do not add up")
        state, how = take(reply.header, "state", str), take(reply.header, "how", str)
        if state not in ("running", "ended") or how not in (*ENDS, ""):
            raise FrameError("a state that is not in the list")
        return Block(reply.body, after, (how or "lost") if state == "ended" else "",
                     after >= size or not reply.body)      # half a line at the end never becomes a whole one

    def get(self, name: str, offset: int) -> bytes:
        """The next piece of a published file, BODY_MAX_DOWN bytes or up to its end."""
        asked = {"name": name, "offset": offset, "length": BODY_MAX_DOWN}
        return self._ask(Verb.GET, asked, seconds=120).body

    def stop(self, job_id: str, grace: int) -> str:
        how = take(self._ask(Verb.STOP, {"job_id": job_id, "grace": grace}, seconds=180).header, "how", str)
        if how not in ENDS:
            raise FrameError("an end that is not in the list")
        return how

    def wipe(self, order: Mapping[str, Json], canaries: bytes, seconds: float, progress: Progress) -> Wiped:
        reply = self._ask(Verb.WIPE, {"order": order}, canaries, seconds, progress)
        said, decoy = reply.header, reply.header.get("decoy_found")
        if digest(said, "sha256") != sha256(reply.body):
            raise FrameError("the evidence is not what its digest says")
        if decoy not in (True, False, None):
            raise FrameError("field 'decoy_found' is neither yes nor no")
        kept = tuple(clean(k, 120) for k in take(said, "kept", list))
        return Wiped(take(said, "outcome", str), number(said, "files"), number(said, "leftovers"), decoy,
                     number(said, "hits"), kept, reply.body)

    def bye(self) -> None:
        """Say that it is over; a node that does not answer has heard enough."""
        try:
            self._ask(Verb.BYE, {}, seconds=10)
        except Broken:
            return


def probe(channel: AgentChannel, names: Sequence[str]) -> dict[str, tuple[int, bytes]]:
    """The one verb that needs no lease: it looks, and leaves nothing behind."""
    reply = channel.ask(Verb.PROBE, {"names": list(names)})
    results, outputs, offset = take(reply.header, "results", dict), {}, 0
    for name in names:
        result = take(results, name, dict)
        size = number(result, "bytes", BODY_MAX_DOWN)
        outputs[name] = (take(result, "rc", int), reply.body[offset:offset + size])
        offset += size
    if offset != len(reply.body):
        raise FrameError("outputs do not add up")
    return outputs


def digest(header: Mapping[str, Any], name: str) -> Digest:
    value = take(header, name, str)
    if not DIGEST.fullmatch(value):
        raise FrameError(f"field {name!r} is not a digest")
    return Digest(value)
