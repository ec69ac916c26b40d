"""The agent: one process a connection, which turns frames into deeds and remembers nothing.

What a lease needs over a connection's end lies in its folder or in its keeper's memory. The agent runs on the node's own
Python (3.8 or newer, standard library), imported from memory; it never runs a shell, never takes a path from the wire,
and what it refuses it refuses in words of ours.
"""
from __future__ import annotations

import os
import platform
import sys
import time
from collections.abc import Callable
from typing import Any

from remote_payload import frames, jobs, link, parts, upkeep
from remote_payload.channel import Channel
from remote_payload.frames import BadFrame, Frame, Refused
from remote_payload.install import install
from remote_payload.probe import probe
from remote_payload.workspace import LEASE, Workspace, boot_id, harden, holder, home

PROTOCOL = 1
DAYS_30 = 30 * 86400


def main() -> int:
    """Serves standard input and output until the end of the stream. 1: the peer broke a cap."""
    harden()
    target = os.dup(1)
    nowhere = os.open("/dev/null", os.O_RDWR)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)
    return Agent(Channel(0, target)).serve()


class Agent:
    """The requests of one connection, one after the other."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.place: Workspace | None = None
        self.challenge = upkeep.Challenge()
        self._verbs: dict[str, Callable[[Frame], tuple[dict[str, Any], bytes]]] = {
            "hello": self._hello, "arm": self._arm, "probe": self._probe, "parts": self._parts, "put": self._put,
            "close": self._close, "install": self._install, "fetch": self._fetch, "challenge": self._challenge,
            "start": self._start, "records": self._records, "get": self._get, "stop": self._stop, "wipe": self._wipe,
            "bye": self._bye, "discard": self._discard}

    def serve(self) -> int:
        while True:
            try:
                asked = self.channel.read()
            except BadFrame:
                return 1
            if asked is None:
                return 0
            self.channel.send(self._answer(asked))
            if frames.NAMES.get(asked.type) == "bye":
                return 0

    def _answer(self, asked: Frame) -> Frame:
        try:
            if asked.type not in frames.NAMES:
                raise Refused("bad-request", "not a verb")
            if sys.version_info < (3, 8):  # noqa: UP036  the node's own Python
                raise Refused("python", f"python {platform.python_version()} is too old; 3.8 is needed")
            header, body = self._verbs[frames.NAMES[asked.type]](asked)
            return Frame(asked.type + frames.REPLY, header, body)
        except Refused as no:
            return Frame(frames.REFUSED, {"code": no.code, "detail": no.detail})
        except Exception as error:  # noqa: BLE001  why: its text may name places of the node; its type may not
            return Frame(frames.REFUSED, {"code": "internal", "detail": f"{type(error).__name__} {where(error)}"})

    # ---- the connection and the keeper -----------------------------------------------------------------------

    def _here(self) -> Workspace:
        if self.place is None:
            raise Refused("bad-request", "hello comes first")
        return self.place

    def _armed(self) -> Workspace:
        """The workspace, with a keeper that lives and is not ending."""
        place = self._here()
        state = link.ask(place, "hello")
        if state is None or state.header["over"]:
            raise Refused("not-armed", "no keeper watches this lease")
        return place

    def _hello(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        lease = asked.header.get("lease")
        if asked.header.get("protocol") != PROTOCOL or not isinstance(lease, str) or not LEASE.fullmatch(lease):
            raise Refused("bad-request", "not a hello of this protocol")
        place = Workspace(home(), lease)
        state = link.ask(place, "hello", {"heard": True})
        if state is None and holder(place.lock) not in (None, lease):
            raise Refused("busy", "another lease holds this node")
        self.place = place
        told = None
        if state is not None and not state.header["finished"]:
            told = {name: state.header[name] for name in ("until_in", "silence", "job")}
        return {"protocol": PROTOCOL, "python": "{}.{}".format(*sys.version_info[:2]), "boot_id": boot_id(),
                "clock": int(time.time()), "keeper": told}, b""

    def _arm(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        place = self._here()
        seconds, silence, words = (asked.header.get(name) for name in ("seconds", "silence", "self_end"))
        for value in (seconds, silence):
            if not isinstance(value, int) or isinstance(value, bool) or not 1 <= value <= DAYS_30:
                raise Refused("bad-request", "seconds or silence is not a number that can be")
        if not isinstance(words, list) or len(words) > 64 or not all(isinstance(word, str) for word in words):
            raise Refused("bad-request", "self_end is not a list of words")
        wanted = {"seconds": seconds, "silence": silence, "self_end": words}
        state = upkeep.arm(place, wanted)
        return {"seconds": state["until_in"], "silence": state["silence"], "clock": int(time.time())}, b""

    def _bye(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        if self.place is not None:
            link.ask(self.place, "bye")
        self.challenge.end()
        return {}, b""

    def _probe(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        with self.channel.working():
            return probe(asked.header.get("names"), home())

    # ---- cargo -----------------------------------------------------------------------------------------------

    def _parts(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        place = self._armed()
        with self.channel.working() as tell:
            return {"have": parts.have(place, asked.header, tell)}, b""

    def _put(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        place = self._armed()
        with self.channel.working():
            return parts.put(place, asked.header, asked.body), b""

    def _close(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        place = self._armed()
        with self.channel.working() as tell:
            return parts.close(place, asked.header, tell), b""

    def _discard(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        with self.channel.working():
            parts.discard(self._here(), asked.header)
        return {}, b""

    def _get(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        return parts.get(self._here(), asked.header)

    def _install(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        place = self._armed()
        with self.channel.working() as tell:
            return install(place, asked.header, asked.body, tell), b""

    def _fetch(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        place = self._armed()
        with self.channel.working() as tell:
            return upkeep.fetch_base(place, asked.header.get("base"), tell), b""

    def _challenge(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        place = self._here()
        with self.channel.working():
            return self.challenge.ask(place, asked.header)

    # ---- the job ---------------------------------------------------------------------------------------------

    def _start(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        place = self._armed()
        with self.channel.working() as tell:
            try:
                return jobs.start(place, asked.header, asked.body, tell), b""
            finally:
                asked.body[:] = bytes(len(asked.body))  # type: ignore[index]

    def _records(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        return jobs.records(self._here(), asked.header)

    def _stop(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        place = self._here()
        with self.channel.working() as tell:
            return {"how": jobs.stop(place, asked.header, tell)}, b""

    def _wipe(self, asked: Frame) -> tuple[dict[str, Any], bytes]:
        place, order = self._here(), upkeep.order_of(asked.header, asked.body)
        upkeep.keeper_for(place, order)
        with self.channel.working() as tell:
            return upkeep.wipe(place, order, tell)


def where(error: BaseException) -> str:
    """The innermost place of ours in a traceback, as file:line."""
    place, trace = "", error.__traceback__
    while trace is not None:
        name = os.path.basename(trace.tb_frame.f_code.co_filename)  # noqa: PTH119  a name in an archive
        if "remote_payload" in trace.tb_frame.f_code.co_filename:
            place = f"{name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


if __name__ == "__main__":
    sys.exit(main())
