"""Keeps one server and everything it ever starts in one tree, so that all of it can be ended: `python -m … -- COMMAND`.

On Linux this process adopts whatever its children leave behind (a keeper detaches itself on purpose). TERM ends the whole
tree. It must not know what the server is.
"""
from __future__ import annotations

import contextlib
import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from types import FrameType

PR_SET_CHILD_SUBREAPER = 36
STATE, PARENT, STARTED = 0, 1, 19        # places in /proc/PID/stat, counted from behind the name


def descendants(root: int) -> list[int]:
    """Every living process below `root`, deepest last, older ones first: a server comes before the orphans that were
    taken in after it, whatever their numbers. Zombies are left out."""
    children: dict[int, list[int]] = {}
    for _, pid, parent in sorted(_parents()):
        children.setdefault(parent, []).append(pid)
    found, turn = [], [root]
    while turn:
        turn = [child for pid in turn for child in children.get(pid, [])]
        found += turn
    return found


def of_user(uid: int) -> list[int]:
    """Every living process of a user that exists for one node only."""
    found = []
    for entry in _processes():
        with contextlib.suppress(OSError):
            if uid in _uids(entry) and _state(entry) != "Z":
                found.append(int(entry.name))
    return found


def kill(pids: Iterable[int]) -> None:
    for pid in pids:
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.kill(pid, signal.SIGKILL)


def kill_all(listed: list[int], again: object, seconds: float = 10) -> bool:
    """Kill what `again()` lists until it lists nothing. True when nothing is left."""
    assert callable(again)
    deadline = time.monotonic() + seconds
    while listed and time.monotonic() < deadline:
        kill(listed)
        time.sleep(0.05)
        listed = list(again())
    return not listed


def alive(pid: int) -> bool:
    with contextlib.suppress(OSError):
        return _state(Path("/proc") / str(pid)) != "Z"
    return False


def _processes() -> list[Path]:
    return [entry for entry in Path("/proc").iterdir() if entry.name.isdigit()]


def _parents() -> list[tuple[int, int, int]]:
    """(time of start in ticks since boot, pid, parent). Numbers wrap around, so a pid says nothing about age."""
    found = []
    for entry in _processes():
        with contextlib.suppress(OSError):
            fields = _stat(entry)
            if fields[STATE] != "Z":
                found.append((int(fields[STARTED]), int(entry.name), int(fields[PARENT])))
    return found


def _stat(entry: Path) -> list[str]:
    """The fields of /proc/PID/stat behind the name, which may hold anything: state, parent, …"""
    return (entry / "stat").read_text().rpartition(")")[2].split()


def _state(entry: Path) -> str:
    return _stat(entry)[STATE]


def _uids(entry: Path) -> set[int]:
    line = next(x for x in (entry / "status").read_text().splitlines() if x.startswith("Uid:"))
    return {int(n) for n in line.split()[1:]}


def main(argv: list[str]) -> int:
    """Run the command after "--" until it ends or TERM comes; then end everything below."""
    if sys.platform == "linux":
        ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    server = subprocess.Popen(argv[argv.index("--") + 1:], stdin=subprocess.DEVNULL)

    def leave(signum: int, frame: FrameType | None) -> None:
        raise SystemExit(0)
    signal.signal(signal.SIGTERM, leave)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        while True:                      # also buries the orphans that came to us
            pid, _ = os.wait()
            if pid == server.pid:
                return 1
    finally:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        kill_all(descendants(os.getpid()), lambda: descendants(os.getpid()))


if __name__ == "__main__":
    sys.exit(main(sys.argv))
