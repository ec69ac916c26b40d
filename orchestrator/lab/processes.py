"""The lab's own small services as processes: started detached from the terminal, known by pid and command line.

A pid alone is no identity: it is only ended when its command line still names the module it was started with.
"""
from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from pathlib import Path

from ..errors import Refused
from . import reaper

HERE = Path(__file__).resolve().parents[2]
_children: dict[int, subprocess.Popen[bytes]] = {}


def spawn(module: str, arguments: list[str], log: Path) -> int:
    """`python -m module arguments` in a session of its own; its output goes to the log."""
    with log.open("ab") as out:
        child = subprocess.Popen([sys.executable, "-m", module, *arguments], stdin=subprocess.DEVNULL, stdout=out,
                                 stderr=out, start_new_session=True, env={**os.environ, "PYTHONPATH": str(HERE)}, cwd="/")
    _children[child.pid] = child
    return child.pid


def lives(pid: int, module: str) -> bool:
    if child := _children.get(pid):
        return child.poll() is None      # ours; its command line cannot be read yet in its first moments
    try:
        words = (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return not Path("/proc").is_dir() and _answers_signal(pid)
    return module.encode() in words and reaper.alive(pid)


def end(pid: int, module: str, seconds: int = 15) -> None:
    """TERM, then KILL. Gone already is success."""
    for word, patience in ((signal.SIGTERM, seconds), (signal.SIGKILL, 5)):
        deadline = time.monotonic() + patience
        if lives(pid, module):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, word)
        while lives(pid, module) and time.monotonic() < deadline:
            _bury(pid)
            time.sleep(0.02)
    _bury(pid)


def answers(url: str, pid: int, module: str, log: Path, seconds: int = 30) -> None:
    """Wait until the service answers anything at all. Refused with its last words."""
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline and lives(pid, module):
        try:
            with opener.open(url, timeout=5):
                return
        except urllib.error.HTTPError:
            return
        except OSError:
            time.sleep(0.05)
    end(pid, module)
    words = log.read_text(errors="replace")[-400:].strip()
    raise Refused(f"the lab's {module.rpartition('.')[2]} did not start: {words}", hint="sealtune lab down, then try again")


def _bury(pid: int) -> None:
    if pid in _children and _children[pid].poll() is not None:
        del _children[pid]


def _answers_signal(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except OSError:
        return False
    return True
