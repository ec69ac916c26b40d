"""A secret in a file, as OpenSSH is strict about its own: ours, nobody else's, no link, whole or not there.

What is written is on disk before its name exists; what is destroyed is overwritten first, which on a flash disk
is a courtesy and no promise.
"""
from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import SealtuneError

MOST_BYTES = 64 * 1024


class VaultTrouble(SealtuneError):
    """A key file is missing, or others could have read or placed it."""


def write_new(path: Path, secret: bytes) -> None:
    """All of it, 0600, under a name that did not exist. FileExistsError when another process was faster."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    draft.unlink(missing_ok=True)            # left by a process of the same number that died
    with _opened(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL) as fd:
        os.fchmod(fd, 0o600)
        os.write(fd, secret)
        os.fsync(fd)
    try:
        os.link(draft, path)                 # fails where rename would replace
    finally:
        draft.unlink()
    _sync(path.parent)


def read(path: Path) -> bytes:
    """FileNotFoundError; VaultTrouble when the file is not safely ours."""
    with _opened(path, os.O_RDONLY) as fd:
        _must_be_ours(fd, path)
        return os.read(fd, MOST_BYTES)


def destroy(path: Path) -> None:
    """Overwrite and unlink, drafts of dead processes too. Gone already is success; a link is removed, not followed."""
    for one in (path, *path.parent.glob(f".{path.name}.*")):
        _destroy_one(one)


def _destroy_one(path: Path) -> None:
    if path.is_symlink():
        path.unlink()
    try:
        with _opened(path, os.O_WRONLY) as fd:
            os.pwrite(fd, os.urandom(os.fstat(fd).st_size), 0)
            os.fsync(fd)
        path.unlink()
    except FileNotFoundError:
        return
    _sync(path.parent)


def own_folder(folder: Path) -> None:
    """Make it 0700, or see that it is."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    facts = folder.lstat()
    if not stat.S_ISDIR(facts.st_mode) or facts.st_uid != os.geteuid():
        raise VaultTrouble(f"not a folder of yours: {folder}")
    if facts.st_mode & 0o077:
        raise VaultTrouble(f"others may look into {folder}", hint=f"chmod 700 {folder}")


def _must_be_ours(fd: int, path: Path) -> None:
    facts = os.fstat(fd)
    if not stat.S_ISREG(facts.st_mode) or facts.st_size > MOST_BYTES:
        raise VaultTrouble(f"not a key file: {path}")
    if facts.st_uid != os.geteuid():
        raise VaultTrouble(f"key file of another user: {path}")
    if facts.st_mode & 0o077:
        raise VaultTrouble(f"others may read {path}", hint=f"it counts as known to them; or: chmod 600 {path}")


@contextmanager
def _opened(path: Path, flags: int) -> Iterator[int]:
    try:
        fd = os.open(path, flags | os.O_NOFOLLOW | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
    except (FileNotFoundError, FileExistsError):
        raise
    except OSError as problem:               # ELOOP: a link; ENXIO: a pipe without a reader
        raise VaultTrouble(f"cannot open {path}: {problem.strerror}", hint="a link is not followed") from problem
    try:
        yield fd
    finally:
        os.close(fd)


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
