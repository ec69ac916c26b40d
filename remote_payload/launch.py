"""How a keeper comes to life: forked twice from an agent, out of its session, nothing of the connection left open.

It claims the workspace before anybody is told that it lives. The archive that the code is imported from is a memory
file; its descriptor is the one thing that goes along.
"""
from __future__ import annotations

import os
import re
import select
import signal
import sys
import time
from types import FrameType

from remote_payload.frames import Refused
from remote_payload.keeper import Keeper
from remote_payload.workspace import Workspace, harden, try_lock

READY, BUSY, BROKEN = b"ready", b"busy", b"broken"
ARCHIVE = re.compile(r"/proc/self/fd/([0-9]+)")


def launch(place: Workspace, seconds: int, silence: int) -> None:
    """Forks the keeper off and waits until it holds the claim. Raises Refused: busy, internal."""
    read_end, write_end = os.pipe()
    child = os.fork()
    if child == 0:
        _detach(place, write_end, seconds, silence)
    os.close(write_end)
    os.waitpid(child, 0)
    ready, _, _ = select.select([read_end], [], [], 20)
    word = os.read(read_end, 16) if ready else b""
    os.close(read_end)
    if word == BUSY:
        raise Refused("busy", "another lease holds this node")
    if word != READY:
        raise Refused("internal", "the keeper did not start")


def _detach(place: Workspace, ready: int, seconds: int, silence: int) -> None:
    """In the first child: a session of its own, a second fork, nothing of the connection left open. Never returns."""
    try:
        os.setsid()
        if os.fork():
            os._exit(0)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM):
            signal.signal(number, _unmoved)
        os.chdir("/")
        _close_all_but(ready)
        harden()
        _serve(place, ready, seconds, silence)
    finally:
        os._exit(1)                      # also after an error: its text has nowhere to go


def _unmoved(number: int, frame: FrameType | None) -> None:
    """Signals meant for a session do not end us. A handler, not "ignore": that the trainer would inherit."""


def _close_all_but(ready: int) -> None:
    """Standard streams to nowhere. The archive that we are imported from stays open."""
    kept = {ready} | {int(found.group(1)) for found in map(ARCHIVE.match, sys.path) if found}
    nowhere = os.open("/dev/null", os.O_RDWR)
    for fd in (0, 1, 2):
        os.dup2(nowhere, fd)
    for name in os.listdir("/proc/self/fd"):  # noqa: PTH208  numbers, no paths
        if int(name) > 2 and int(name) not in kept:
            try:
                os.close(int(name))
            except OSError:
                continue                 # the one that listed the folder


def _serve(place: Workspace, ready: int, seconds: int, silence: int) -> None:
    claim = _claim(place)
    if claim is None:
        os.write(ready, BUSY)
        os._exit(0)
    try:
        keeper = Keeper(place, claim, seconds, silence)
    except OSError:
        os.write(ready, BROKEN)
        os._exit(1)
    os.write(ready, READY)
    os.close(ready)
    keeper.run()
    os._exit(0)


def _claim(place: Workspace) -> int | None:
    """The lock, tried for two seconds: an agent that only asks who holds it has it for a moment."""
    for _ in range(20):
        claim = try_lock(place.lock)
        if claim is not None:
            os.ftruncate(claim, 0)
            os.pwrite(claim, place.lease.encode(), 0)
            return claim
        time.sleep(0.1)
    return None
