"""Files of the audit room: written whole and durably or not at all, read with a bound, never through a link."""
from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from ..errors import SealtuneError


class EvidenceTrouble(SealtuneError):
    """A report or its evidence could not be written or read."""


def write(path: Path, data: bytes) -> None:
    """Replace the file, 0600, on disk on return. The same bytes again change nothing."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    try:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW, 0o600)
        with os.fdopen(fd, "wb") as out:
            out.write(data)
            out.flush()
            os.fsync(fd)
        draft.replace(path)
        _sync(path.parent)
    except OSError as problem:
        raise EvidenceTrouble(f"cannot write {path}: {problem.strerror}") from problem


def read(path: Path, most: int) -> bytes | None:
    """None when there is no such file. EvidenceTrouble when it is longer than `most`, a link, or no plain file."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        return None
    except OSError as problem:
        if problem.errno == errno.ELOOP:
            raise _link(path) from problem
        raise EvidenceTrouble(f"cannot read {path}: {problem.strerror}") from problem
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise EvidenceTrouble(f"{path} is no plain file")
        with os.fdopen(fd, "rb", closefd=False) as source:
            data = source.read(most + 1)
    finally:
        os.close(fd)
    if len(data) > most:
        raise EvidenceTrouble(f"{path} is longer than {most} bytes")
    return data


def must_be_no_link(folder: Path) -> Path:
    """The same folder. EvidenceTrouble for a link: who handed it over could point it at any file of ours."""
    if folder.is_symlink():
        raise _link(folder)
    return folder


def _link(path: Path) -> EvidenceTrouble:
    return EvidenceTrouble(f"{path} is a link, and links are not followed", hint="copy the files themselves there")


def _sync(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
