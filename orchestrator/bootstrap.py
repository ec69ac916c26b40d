"""Makes `.venv` beside the clone from `orchestrator/requirements.lock`, and starts the command again inside it.

Standard library only. Every package is pinned by hash; `uv` does the work where it is on PATH, otherwise pip. Messages
go to stderr. An installed package needs none of this: there is no lock's clone around it.
"""
from __future__ import annotations

import fcntl
import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
LOCK = ROOT / "orchestrator" / "requirements.lock"
VENV = ROOT / ".venv"
PYTHON = VENV / "bin" / "python"

SCRIPT = """#!{python}
import sys
from orchestrator.__main__ import main
sys.exit(main())
"""


def needed() -> bool:
    """True in a clone, outside its own environment."""
    return (ROOT / "pyproject.toml").is_file() and Path(sys.prefix).resolve() != VENV.resolve()


def enter() -> int:
    """Make the environment if it is missing or old, then become `python -m orchestrator` in it."""
    try:
        problem = ensure(VENV, LOCK)
    except KeyboardInterrupt:
        _say("setting up was interrupted, nothing else was begun; the same command goes on")
        return 130
    if problem:
        print(problem, file=sys.stderr)
        return 1
    os.execv(PYTHON, [str(PYTHON), "-m", "orchestrator", *sys.argv[1:]])  # noqa: S606


def ensure(venv: Path, lock: Path, more: Path | None = None) -> str:
    """Bring `venv` to the state of the lock, and of one more on top of it. Returns "" or what went wrong, with a hint.
    One process at a time."""
    if sys.hexversion < 0x030B0000:      # this file also runs under an older python3, to say so
        return (f"sealtune: python 3.11 or later is needed, this is {sys.version.split()[0]}\n"
                "hint: python3.12 -m orchestrator")
    with (venv.parent / f"{venv.name}.making").open("w") as guard:
        fcntl.flock(guard, fcntl.LOCK_EX)
        try:
            if not _stands(venv, lock):
                _make(venv, lock)
            if more and not _stands(venv, more):
                _install(venv, more)
        except subprocess.CalledProcessError as failed:
            return _explain(failed)
    return ""


def _stands(venv: Path, lock: Path) -> bool:
    mark = _mark(venv, lock)
    return mark.is_file() and mark.read_text() == _digest(lock)


def _mark(venv: Path, lock: Path) -> Path:
    """Written last: what the environment was made from."""
    return venv / f"{lock.parent.name}.lock-digest"


def _digest(lock: Path) -> str:
    return hashlib.sha256(lock.read_bytes() + sys.version.encode()).hexdigest()


def _make(venv: Path, lock: Path) -> None:
    _mark(venv, lock).unlink(missing_ok=True)    # first to go and last to come: whatever cuts in, it vouches for a whole
    shutil.rmtree(venv, ignore_errors=True)
    uv = shutil.which("uv")
    _run([uv, "venv", "--quiet", "--python", sys.executable, str(venv)] if uv else [sys.executable, "-m", "venv", str(venv)])
    _install(venv, lock, _link)
    _say(f"the command is {venv.name}/bin/sealtune; to call it by its name: export PATH=\"{venv / 'bin'}:$PATH\"")


def _install(venv: Path, lock: Path, then: Callable[[Path], None] = lambda venv: None) -> None:
    uv, python = shutil.which("uv"), str(venv / "bin" / "python")
    count = sum("==" in line and not line.startswith((" ", "#")) for line in lock.read_text().splitlines())
    _say(f"setting up {venv.name} with {'uv' if uv else 'pip'}, once: {count} packages of {lock.parent.name}, each checked "
         "against its hash")
    common = ["--quiet", "--no-deps", "--require-hashes", "--only-binary", ":all:"]
    if uv:
        _run([uv, "pip", "install", *common, "--compile-bytecode", *_find_links(), "--python", python, "-r", str(lock)])
    else:
        _run([python, "-m", "pip", "install", *common, "--disable-pip-version-check", "-r", str(lock)])
    then(venv)
    _mark(venv, lock).write_text(_digest(lock))


def _find_links() -> list[str]:
    """uv does not read PIP_FIND_LINKS; handed on, so that wheels that lie on this disk are used."""
    return [part for folder in os.environ.get("PIP_FIND_LINKS", "").split() for part in ("--find-links", folder)]


def _link(venv: Path) -> None:
    """The clone on the environment's path, and the command `sealtune` in it."""
    site = next((venv / "lib").glob("python3*/site-packages"))
    (site / "sealtune.pth").write_text(f"{ROOT}\n")
    script = venv / "bin" / "sealtune"
    script.write_text(SCRIPT.format(python=venv / "bin" / "python"))
    script.chmod(0o755)


def _run(command: list[str]) -> None:
    subprocess.run(command, check=True, stdin=subprocess.DEVNULL, stdout=sys.stderr.fileno())


def _explain(failed: subprocess.CalledProcessError) -> str:
    if "venv" in failed.cmd and importlib.util.find_spec("ensurepip") is None:
        return ("sealtune: this python has no complete venv module\n"
                "hint: sudo apt install python3-venv   (or install uv)")
    return f"sealtune: setting up the environment failed: {failed.cmd[0]} exited with {failed.returncode}"


def _say(text: str) -> None:
    print(f"sealtune: {text}", file=sys.stderr, flush=True)
