"""The way from an agent to the keeper of its lease: one frame there, one frame back, over a local socket.

The socket has an abstract name made of the lease and the home, so it needs no file, outlives the wipe of the folder
and has no path that could be too long. Both sides look at the other's uid. It must not decide anything.
"""
from __future__ import annotations

import hashlib
import os
import socket
import struct

from remote_payload import frames
from remote_payload.frames import BadFrame, Frame, Refused
from remote_payload.workspace import Workspace

SECONDS = 10.0
BODY_MAX = 2 * 1024 * 1024               # a finished wipe document
CREDENTIALS = struct.Struct("3i")


def name_of(place: Workspace) -> str:
    told = f"{place.lease}\0{os.path.realpath(place.home)}\0{os.geteuid()}"
    return "\0sealtune-" + hashlib.sha256(told.encode()).hexdigest()[:40]


def listen(place: Workspace) -> socket.socket:
    """The keeper's end. OSError when the name is taken."""
    listener = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC)
    listener.bind(name_of(place))
    listener.listen(8)
    listener.settimeout(0)
    return listener


def ours(peer: socket.socket) -> bool:
    """Is the other end a process of this very user?"""
    raw = peer.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, CREDENTIALS.size)
    return bool(CREDENTIALS.unpack(raw)[1] == os.geteuid())


def ask(place: Workspace, verb: str, header: dict[str, object] | None = None, body: bytes | bytearray = b"",
        ) -> Frame | None:
    """The keeper's answer, or None when no keeper lives. Raises Refused with the keeper's own words."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM | socket.SOCK_CLOEXEC) as peer:
        peer.settimeout(SECONDS)
        try:
            peer.connect(name_of(place))
            if not ours(peer):
                return None
            peer.sendall(frames.encode(Frame(frames.VERBS[verb], header or {}, body), BODY_MAX))
            answer = receive(peer)
        except (OSError, BadFrame):
            return None
    if answer is not None and answer.type == frames.REFUSED:
        raise Refused(str(answer.header.get("code")), str(answer.header.get("detail")))
    return answer


def receive(peer: socket.socket) -> Frame | None:
    return frames.read(_taker(peer), BODY_MAX)


def _taker(peer: socket.socket) -> frames.Take:
    def take(size: int) -> bytearray:
        got = bytearray()
        while len(got) < size:
            chunk = peer.recv(min(size - len(got), 1 << 18))
            if not chunk:
                break
            got += chunk
        return got
    return take
