"""The lab node's inside: the home a renter sees, the uid it has, the python and tools it finds.

As root the sandbox must be reachable by an unprivileged uid, so it may have to lie beside the lab's folder instead of in
it. It must not open any folder but the node's own for others to walk through.
"""
from __future__ import annotations

import hashlib
import os
import pwd
import shutil
import stat
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from ..errors import Refused

FIRST_UID, UIDS = 50_000, 9_000          # below what containers map, above what systems give out
PYTHONS = ("python3.11", "python3.12", "python3.13", "python3.14", "python3")
AT_LEAST = (3, 11)
CHECK = "import sys,ssl,zlib,zipimport,ctypes;print('%d.%d'%sys.version_info[:2])"


@dataclass(frozen=True, slots=True)
class Sandbox:
    base: Path                           # holds home/ and bin/
    home: Path
    uid: int | None                      # None: sessions run as the calling user
    python: Path


def prepare(folder: Path) -> Sandbox:
    """Make it, or take it as it stands. Refused when no python can be run inside."""
    uid = _uid(folder) if os.geteuid() == 0 else None
    base = folder if uid is None or reachable(folder) else open_base(folder)
    home = base / "home"
    home.mkdir(mode=0o700, exist_ok=True)
    if uid is not None:
        base.chmod(0o711)
        os.chown(home, uid, uid, follow_symlinks=False)
    return Sandbox(base, home, uid, _python(uid))


def remove(folder: Path) -> None:
    """Take away the home with all that renters left in it, and what lies outside the lab's folder."""
    if os.geteuid() == 0 and not reachable(folder):
        shutil.rmtree(open_base(folder), ignore_errors=True)
    shutil.rmtree(folder / "home", ignore_errors=True)


def lay_out_tools(folder: Path, room: Sandbox) -> None:
    """bin/: the python that was found, and uv where this machine has it, as a node with uv would."""
    folder.mkdir(mode=0o755, exist_ok=True)
    link = folder / "python3"
    link.unlink(missing_ok=True)
    link.symlink_to(room.python)
    uv = shutil.which("uv") or shutil.which("uv", path=str(Path(sys.executable).parent))
    if uv and not (folder / "uv").exists():
        shutil.copy2(Path(uv).resolve(), folder / "uv")
        (folder / "uv").chmod(0o755)


def _uid(folder: Path) -> int:
    """A number nobody has, always the same for one folder."""
    start = int.from_bytes(hashlib.sha256(str(folder).encode()).digest()[:4], "big") % UIDS
    for step in range(UIDS):
        uid = FIRST_UID + (start + step) % UIDS
        try:
            pwd.getpwuid(uid)
        except KeyError:
            return uid
    raise Refused("no free user number for the lab's node")


def reachable(folder: Path) -> bool:
    """May an unprivileged uid walk down to it? (The folder itself is opened for walking when it is used.)"""
    return all(parent.stat().st_mode & stat.S_IXOTH for parent in folder.parents)


def open_base(folder: Path) -> Path:
    """A folder of ours, outside, that everybody may walk through: in the system's folder for temporary files."""
    base = Path(tempfile.gettempdir()) / f"sealtune-lab-{hashlib.sha256(str(folder).encode()).hexdigest()[:12]}"
    base.mkdir(mode=0o711, exist_ok=True)
    found = base.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        raise Refused(f"{base} belongs to somebody else")
    return base


def _python(uid: int | None) -> Path:
    """The first python of at least 3.11 that the sessions' user can run; 3.11 before newer ones."""
    folders = os.pathsep.join((os.environ.get("PATH", ""), os.defpath, "/usr/local/bin"))
    found = [Path(sys.executable).resolve()] if sys.version_info[:2] == AT_LEAST else []
    for name in PYTHONS:
        found += [Path(folder) / name for folder in folders.split(os.pathsep) if folder]
    for candidate in dict.fromkeys([*found, Path(sys.executable).resolve()]):
        if candidate.is_file() and _runs(candidate, uid):
            return candidate
    who = "this user" if uid is None else "an unprivileged user"
    raise Refused(f"no python of at least 3.11 that {who} can run", hint="install python3 from your distribution")


def _runs(python: Path, uid: int | None) -> bool:
    """Through a shell: setpriv itself may still reach what the user cannot."""
    drop = [] if uid is None else ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--no-new-privs"]
    try:
        out = subprocess.run([*drop, "sh", "-c", 'exec "$0" -I -c "$1"', str(python), CHECK], cwd="/", timeout=20,
                             capture_output=True, text=True, stdin=subprocess.DEVNULL)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return out.returncode == 0 and tuple(int(n) for n in out.stdout.split(".")) >= AT_LEAST
