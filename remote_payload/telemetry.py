"""The GPU's own figures once a second, as nvidia-smi tells them. Never waits for it, never believes its text."""
from __future__ import annotations

import shutil
import subprocess
import time

from remote_payload.child import die_with_parent

FIELDS = ("mem_mib", "mem_total_mib", "util_pct", "temp_c", "power_w")
QUERY = ("--query-gpu=memory.used,memory.total,utilization.gpu,temperature.gpu,power.draw",
         "--format=csv,noheader,nounits")
EVERY, TOO_LONG = 1.0, 5.0


class Gpu:
    """`tick` gives the newest sample once, or None. Without nvidia-smi it gives None for ever."""

    def __init__(self) -> None:
        self._tool = shutil.which("nvidia-smi")
        self._asked_at = 0.0
        self._asked: subprocess.Popen[bytes] | None = None

    def tick(self) -> dict[str, str] | None:
        now = time.monotonic()
        if self._asked is None:
            if self._tool and now - self._asked_at >= EVERY:
                self._ask(now)
            return None
        if self._asked.poll() is None:
            if now - self._asked_at > TOO_LONG:
                self._asked.kill()
            return None
        assert self._asked.stdout is not None
        with self._asked.stdout as output:
            line = output.read(4096).decode("ascii", "replace")
        sound, self._asked = self._asked.returncode == 0, None
        return figures(line) if sound else None

    def _ask(self, now: float) -> None:
        self._asked_at = now
        try:
            self._asked = subprocess.Popen(
                [str(self._tool), *QUERY], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL, bufsize=0, preexec_fn=die_with_parent)
        except OSError:
            self._tool = None

    def close(self) -> None:
        if self._asked is not None:
            self._asked.kill()
            self._asked.wait()


def figures(line: str) -> dict[str, str] | None:
    """The first GPU's figures: digits only, a figure that it does not know is left out."""
    values = [value.strip() for value in line.splitlines()[0].split(",")] if line.strip() else []
    if len(values) != len(FIELDS):
        return None
    return {name: value for name, value in zip(FIELDS, values)  # noqa: B905  Python 3.8
            if value.replace(".", "", 1).isdigit() and len(value) < 16} or None
