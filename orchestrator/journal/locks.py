"""Locks between processes: one file each, held by flock, so that the kernel lets go when a process dies.

A run's lock file also says who holds it (its text, a pid) and when that process last watched its run (its
time of change). `in_use` must look without being taken for a holder: whoever looks or takes passes the gate first.
"""
from __future__ import annotations

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def held(path: Path) -> Iterator[None]:
    """Wait for the lock and hold it."""
    fd = _open(path)
    try:
        fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)


def take(path: Path, gate: Path) -> int | None:
    """The descriptor that holds the lock until it is closed, or None when somebody else does."""
    with held(gate):
        fd = _open(path)
        if _try(fd):
            return fd
        os.close(fd)
        return None


def is_held(path: Path, gate: Path) -> bool:
    with held(gate):
        fd = _open(path)
        try:
            return not _try(fd)
        finally:
            os.close(fd)


def write_holder(fd: int) -> None:
    os.ftruncate(fd, 0)
    os.pwrite(fd, str(os.getpid()).encode(), 0)


def holder(path: Path) -> str:
    """The pid of the newest holder, as it wrote it."""
    return path.read_text("ascii", errors="replace")[:20].strip() or "unknown"


def _try(fd: int) -> bool:
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _open(path: Path) -> int:
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    return os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
