"""What the node says about itself: a closed list of files and fixed commands, raw and bounded.

Nothing is judged here; the laptop parses and compares. Standard library of Python 3.8, no shell, no word from the wire.
"""
from __future__ import annotations

import importlib.util
import json
import os
import platform
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from remote_payload.frames import BODY_MAX_DOWN, Refused
from remote_payload.workspace import read_text

EACH_MAX = 256 * 1024
SECONDS = 20
MISSING, TOO_LONG = 127, 124
PCI = Path("/sys/bus/pci/devices")


def probe(names: Any, home: Path) -> tuple[dict[str, Any], bytes]:
    """({results by name}, outputs one after the other in the order asked for)."""
    if not isinstance(names, list) or len(set(map(str, names))) != len(names) or not set(map(str, names)) <= set(PROBES):
        raise Refused("bad-request", "not a list of probes that there are")
    results, body = {}, b""
    for name in names:
        code, output = PROBES[name](home)
        output = output[:min(EACH_MAX, BODY_MAX_DOWN - len(body))]
        results[name] = {"rc": code, "bytes": len(output)}
        body += output
    return {"results": results}, body


def run(*words: str) -> tuple[int, bytes]:
    """A fixed command: (rc, standard output). Its other output is not wanted."""
    if shutil.which(words[0]) is None:
        return MISSING, b""
    try:
        done = subprocess.run(words, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                              timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return TOO_LONG, b""
    except OSError:
        return MISSING, b""
    return done.returncode, done.stdout


def _file(path: str) -> Callable[[Path], tuple[int, bytes]]:
    def read(home: Path) -> tuple[int, bytes]:
        try:
            with Path(path).open("rb") as file:
                return 0, file.read(EACH_MAX)
        except OSError:
            return MISSING, b""
    return read


def _gpus(home: Path) -> tuple[int, bytes]:
    found = sorted(Path("/proc/driver/nvidia/gpus").glob("*/information"))
    return (0 if found else MISSING), b"".join(read_text(str(path)).encode() for path in found)


def _pci(home: Path) -> tuple[int, bytes]:
    """One line a device: address, vendor, device, subsystem, class, link width and speed now and at most."""
    if not PCI.is_dir():
        return MISSING, b""
    fields = ("vendor", "device", "subsystem_vendor", "subsystem_device", "class", "current_link_width",
              "max_link_width", "current_link_speed", "max_link_speed")
    lines = []
    for device in sorted(PCI.iterdir()):
        values = [(read_text(str(device / field), 64).strip() or "-").replace(" ", "_") for field in fields]
        lines.append(" ".join([device.name, *values]))
    return 0, "\n".join(lines).encode()


def _processors(home: Path) -> tuple[int, bytes]:
    text = read_text("/proc/cpuinfo", 1 << 22)
    return 0, str(sum(line.startswith("processor") for line in text.splitlines())).encode()


def _disk(home: Path) -> tuple[int, bytes]:
    facts = os.statvfs(home)
    return 0, f"{facts.f_blocks * facts.f_frsize} {facts.f_bavail * facts.f_frsize}".encode()


def _python(home: Path) -> tuple[int, bytes]:
    uv = run("uv", "--version")[1].decode("ascii", "replace").split()
    return 0, json.dumps({
        "version": platform.python_version(), "path": sys.executable,
        "has_venv": bool(importlib.util.find_spec("venv")), "has_pip": bool(importlib.util.find_spec("pip")),
        "has_ensurepip": bool(importlib.util.find_spec("ensurepip")), "uv": uv[1] if len(uv) > 1 else ""},
        sort_keys=True).encode()


def _wheels(home: Path) -> tuple[int, bytes]:
    """Names of the torch wheels that lie ready, one a line."""
    names = {path.name for folder in os.environ.get("PIP_FIND_LINKS", "").split() if Path(folder).is_dir()
             for path in Path(folder).glob("torch-*.whl")}
    return 0, "\n".join(sorted(names)).encode()


PROBES: dict[str, Callable[[Path], tuple[int, bytes]]] = {
    "nvidia-smi-xml": lambda home: run("nvidia-smi", "-q", "-x"),
    "proc-gpus": _gpus,
    "proc-driver": _file("/proc/driver/nvidia/version"),
    "pci": _pci,
    "meminfo": _file("/proc/meminfo"),
    "cpuinfo-count": _processors,
    "disk": _disk,
    "mounts": _file("/proc/self/mounts"),
    "swaps": _file("/proc/swaps"),
    "preload": _file("/etc/ld.so.preload"),
    "core-pattern": _file("/proc/sys/kernel/core_pattern"),
    "os-release": _file("/etc/os-release"),
    "uname": lambda home: (0, " ".join(platform.uname()[:5]).encode()),
    "python": _python,
    "wheels": _wheels,
    "boot-id": _file("/proc/sys/kernel/random/boot_id"),
    "whoami": lambda home: (0, str(os.geteuid()).encode()),
}
