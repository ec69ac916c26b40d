"""Where things lie on the node, and how a file is made there. Everything of ours is under $HOME/.sealtune.

    <lease16>/     private: one lease's cargo, job and records; gone after the wipe
    public/        pinned packages and public model weights; may be kept
    keeper.lock    the claim of the workspace: who holds its lock owns the GPU

No name comes from the wire without passing one of the closed lists below. Standard library of Python 3.8.
"""
from __future__ import annotations

import contextlib
import ctypes
import fcntl
import hashlib
import json
import os
import re
import resource
import stat
import time
from pathlib import Path
from typing import Any, Callable, Iterator  # noqa: UP035  subscripted at run time by Python 3.8

from remote_payload.frames import Refused, canonical

PUT_NAMES = ("payload.zip", "dataset.age", "checkpoint-in.age")
GET_NAME = re.compile(r"(checkpoint-[0-9]{1,9}|adapter|evaluation|samples)\.age")
LEASE = re.compile(r"[0-9a-f]{64}")
DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
COMMIT = re.compile(r"[0-9a-f]{8,64}")
ENVIRONMENT = re.compile(r"env-[0-9a-f]{16}")
PART_BYTES = 8 * 1024 * 1024
BLOCK = 1 << 20
SET_DUMPABLE = 4
Tell = Callable[[int, int, str], None]   # done, of, what: progress that costs nothing to report


class Workspace:
    """The places of one lease under one home. Making the object touches nothing."""

    def __init__(self, home: Path, lease: str) -> None:
        self.home, self.lease = home, lease
        self.root = home / ".sealtune"
        self.private = self.root / lease[:16]
        self.public = self.root / "public"
        self.models = self.public / "models"
        self.job = self.private / "job"
        self.parts = self.private / "parts"
        self.scratch = self.private / "scratch"
        self.records = self.job / "records.jsonl"
        self.lock = self.root / "keeper.lock"

    def create(self) -> None:
        """Makes the lease's folders, 0700. Refused when the place is not ours alone."""
        for folder in (self.root, self.private, self.job, self.parts, self.scratch, self.public, self.models):
            make_folder(folder)
        mark = self.private / "lease.json"
        if not mark.exists():
            write_atomic(mark, canonical({"lease": self.lease, "boot_id": boot_id()}))
        elif (read_json(mark) or {}).get("lease") != self.lease:
            raise Refused("busy", "another lease with the same beginning lies here")

    def began(self) -> float | None:
        """When the lease began by the file system's own clock, or None."""
        try:
            return (self.private / "lease.json").stat().st_mtime
        except OSError:
            return None

    def environment(self, lock: str) -> Path:
        """Folder of the environment of a lock digest."""
        return self.public / ("env-" + bare(lock)[:16])


def home() -> Path:
    """The home that the session was given. Refused when there is none to write to."""
    place = Path(os.environ.get("HOME", "/"))
    if not place.is_dir() or not os.access(place, os.W_OK | os.X_OK):
        raise Refused("unsuitable", "no home folder that can be written to")
    return place


def make_folder(folder: Path) -> None:
    """A folder 0700 of our own; an existing one must be that already."""
    try:
        folder.mkdir(mode=0o700)
    except FileExistsError:
        pass
    except OSError:
        raise Refused("unsuitable", "the workspace cannot be made") from None
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid() or facts.st_mode & 0o077:
        raise Refused("unsuitable", "the workspace is not ours alone")


@contextlib.contextmanager
def alone(folder: Path, seconds: float, tell: Tell, other: str) -> Iterator[None]:
    """One at a time in a folder; whoever comes later waits, up to `seconds`. The claim goes with the process."""
    began = time.monotonic()
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        while not _claimed(fd):
            waited = time.monotonic() - began
            if waited > seconds:
                raise Refused("unsuitable", f"{other} does not end")
            tell(int(waited), int(seconds), f"seconds of waiting until {other} is over")
            time.sleep(0.2)
        yield
    finally:
        os.close(fd)


def _claimed(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def bare(digest: object) -> str:
    """The hex of "sha256:<hex>"; bad-request for anything else."""
    if not isinstance(digest, str) or not DIGEST.fullmatch(digest):
        raise Refused("bad-request", "not a digest")
    return digest[7:]


def digest_bytes(data: bytes | bytearray) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()


def digest_file(path: Path, tell: Tell | None = None, what: str = "reading") -> str:
    """SHA-256 of a regular file of ours."""
    seen, total = hashlib.sha256(), path.stat().st_size
    with open_plain(path) as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            seen.update(block)
            if tell:
                tell(file.tell(), total, what)
    return "sha256:" + seen.hexdigest()


def open_plain(path: Path) -> Any:
    """A regular file for reading, never through a link."""
    fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError("not a regular file")
    return os.fdopen(fd, "rb")


def write_atomic(path: Path, data: bytes) -> None:
    """The whole file or none of it, on disk when this returns."""
    part = path.with_name(path.name + ".new")
    fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    with os.fdopen(fd, "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)
    sync_folder(path.parent)


def sync_folder(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def read_json(path: Path) -> dict[str, Any] | None:
    """A small document of our own, or None when it is not there or not whole."""
    try:
        with open_plain(path) as file:
            tree = json.loads(file.read(BLOCK))
    except (OSError, ValueError):
        return None
    return tree if isinstance(tree, dict) else None


def read_text(path: str, limit: int = 256 * 1024) -> str:
    """A file of the kernel's or the system's, bounded; "" when it cannot be read."""
    try:
        with Path(path).open("rb") as file:
            return file.read(limit).decode("ascii", "replace")
    except OSError:
        return ""


def boot_id() -> str:
    return read_text("/proc/sys/kernel/random/boot_id", 64).strip() or "unknown"


def try_lock(path: Path) -> int | None:
    """The descriptor that holds the lock of `path` (made if missing), or None while somebody else holds it."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if _same_file(fd, path):
                return fd
        except BlockingIOError:
            os.close(fd)
            return None
        os.close(fd)                     # a wipe took the file away between the two calls


def holder(path: Path) -> str | None:
    """What the holder of the lock wrote into it; None while it is free."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return os.pread(fd, 64, 0).decode("ascii", "replace")
    finally:
        os.close(fd)
    return None


def _same_file(fd: int, path: Path) -> bool:
    try:
        there = path.lstat()
    except OSError:
        return False
    here = os.fstat(fd)
    return (here.st_ino, here.st_dev) == (there.st_ino, there.st_dev)


def harden() -> None:
    """No core dump, not readable by other processes of this user, files for us alone."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    ctypes.CDLL(None).prctl(SET_DUMPABLE, 0, 0, 0, 0)
    os.umask(0o077)


def plain(text: str, limit: int = 200) -> str:
    """Printable ASCII, cut: what may stand in a document of ours."""
    return "".join(c if " " <= c <= "~" else "?" for c in text[:limit])
