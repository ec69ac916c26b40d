"""The node's training environment, made once from its lock and kept in a folder that git ignores.

The key of an environment is the digest of its lock, so a changed lock makes a new one. Installing is uv's
business: hashes required, wheels only, byte code compiled. Other suites may use `training_python` too.
"""
from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LOCKS = REPOSITORY / "remote_payload" / "locks"
KEPT = REPOSITORY / ".payload_cache"
CPU_WHEEL = "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"


def training_python() -> Path:
    """The interpreter of an environment in which the real trainer runs on this machine's CPU."""
    name = "cpu" if any((folder / CPU_WHEEL).is_file() for folder in wheel_folders()) else "cpu-pypi"
    lock = LOCKS / f"{name}.lock"
    place = KEPT / f"env-{name}-{hashlib.sha256(lock.read_bytes()).hexdigest()[:16]}"
    KEPT.mkdir(exist_ok=True)
    with (KEPT / f"{place.name}.busy").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        if not (place / "complete").is_file():
            _make(place, lock)
    return place / "bin" / "python"


def wheel_folders() -> list[Path]:
    return [REPOSITORY / ".wheels", *map(Path, os.environ.get("PIP_FIND_LINKS", "").split())]


def _make(place: Path, lock: Path) -> None:
    links = [word for folder in wheel_folders() if folder.is_dir() for word in ("--find-links", str(folder))]
    index = ["--no-index"] if os.environ.get("PIP_NO_INDEX") else []
    _uv("venv", "--clear", "--no-python-downloads", "--python", sys.executable, str(place))
    _uv("pip", "sync", "--python", str(place / "bin" / "python"), "--require-hashes", "--only-binary", ":all:",
        "--compile-bytecode", *links, *index, str(lock))
    (place / "complete").touch()


def _uv(*words: str) -> None:
    beside = Path(sys.executable).with_name("uv")
    uv = str(beside) if beside.is_file() else shutil.which("uv")
    assert uv, "uv is not installed, see the test requirements"
    done = subprocess.run([uv, "--quiet", *words], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
