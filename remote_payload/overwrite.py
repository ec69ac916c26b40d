"""Removing files of ours: overwrite, flush, rename, unlink, in that order, never through a link.

Overwriting is defence in depth: what lay on the disk was sealed or public anyway, and no file system promises that the
old blocks are gone. It must not touch anything outside the folders it is given.
"""
from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Iterator
from pathlib import Path

from remote_payload.workspace import BLOCK, Tell, Workspace

SHARED_MEMORY = Path("/dev/shm")  # noqa: S108  where a killed job may have left its scratch folder
SCRATCH = re.compile(r"sealtune-([0-9]{1,10})-")
READBACKS, READBACK = 4, 4096


def files_below(folder: Path) -> Iterator[Path]:
    """Everything below that is not a folder, links included, deepest first within a folder."""
    for path in entries(folder):
        if path.is_dir() and not path.is_symlink():
            yield from files_below(path)
        else:
            yield path


def entries(folder: Path) -> list[Path]:
    """What lies in a folder, sorted; nothing where there is no folder."""
    try:
        return sorted(folder.iterdir())
    except OSError:
        return []


def destroy(path: Path, nonce: str = "") -> bool:
    """Overwrites and removes one file. True when random places of it were read back as written.

    Links, sockets and pipes are only unlinked. OSError when it cannot be removed; gone already is success."""
    try:
        facts = path.lstat()
    except FileNotFoundError:
        return False
    same = _overwrite(path, facts.st_size, nonce) if stat.S_ISREG(facts.st_mode) else False
    hidden = path.with_name(os.urandom(8).hex())
    try:
        path.rename(hidden)
    except FileNotFoundError:
        return same
    except OSError:
        hidden = path                    # no room for another name
    hidden.unlink()
    return same


def _overwrite(path: Path, size: int, nonce: str) -> bool:
    try:
        fd = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return False                     # removed all the same; the row says that it was not overwritten
    try:
        pattern = os.urandom(BLOCK)
        for offset in range(0, size, BLOCK):
            os.pwrite(fd, pattern[:min(BLOCK, size - offset)], offset)
        os.fsync(fd)
        return all(_reads_back(fd, size, pattern, place) for place in _places(path.name, size, nonce))
    except OSError:
        return False                     # a full disk has no room for what a file with holes never had: it goes as it is
    finally:
        os.close(fd)


def _places(name: str, size: int, nonce: str) -> list[int]:
    """Offsets that depend on the laptop's nonce, so that they are not known before."""
    drawn = [hashlib.sha256(f"{nonce}\0{name}\0{n}".encode()).digest()[:8] for n in range(READBACKS)]
    return [int.from_bytes(bytes_, "big") % max(1, size) for bytes_ in drawn]


def _reads_back(fd: int, size: int, pattern: bytes, offset: int) -> bool:
    start = offset % BLOCK
    length = min(READBACK, BLOCK - start, size - offset)
    return os.pread(fd, length, offset) == pattern[start:start + length]


def remove_folders(folder: Path) -> None:
    """Removes a tree of folders that hold nothing any more; one that still does stays."""
    for path in entries(folder):
        if path.is_dir() and not path.is_symlink():
            remove_folders(path)
    try:
        folder.rmdir()
    except OSError:
        return


def remove_public(folder: Path, tell: Tell | None = None) -> tuple[int, int]:
    """Unlinks a public tree without overwriting it; (files, bytes). `tell` hears how many went."""
    files = size = 0
    for path in files_below(folder):
        try:
            size += path.lstat().st_size
            path.unlink()
            files += 1
        except OSError:
            continue                     # stands in the inventory afterwards
        if tell:
            tell(files, 0, "removing public files")
    remove_folders(folder)
    return files, size


def memory_scratch(since: float) -> list[Path]:
    """What killed jobs of this user left in shared memory since the lease began: sealtune-<process id>-… folders."""
    found = []
    for path in entries(SHARED_MEMORY):
        named = SCRATCH.match(path.name)
        try:
            facts = path.lstat() if named else None
        except OSError:
            continue                     # gone meanwhile
        ours = facts is not None and stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid()
        if facts and named and ours and facts.st_ctime >= since - 2 and not _a_job_lives(named.group(1)):
            found.append(path)
    return found


def _a_job_lives(pid: str) -> bool:
    try:
        return b"/payload.zip\0" in (Path("/proc") / pid / "cmdline").read_bytes()
    except OSError:
        return False


def remove_private(place: Workspace) -> None:
    """What the keeper does alone: all of the lease's own, and the root if nothing public is left in it."""
    scratch = memory_scratch(place.began() or 0.0) if place.began() else []
    for folder in (place.private, *scratch):
        for path in files_below(folder):
            try:
                destroy(path)
            except OSError:
                continue                 # the next one may go
        remove_folders(folder)
    leave_root(place)


def leave_root(place: Workspace) -> None:
    """Takes away the claim's file and what is empty. Public parts and other leases stay."""
    for folder in (place.models, place.public):
        try:
            folder.rmdir()
        except OSError:
            continue                     # in use
    others = [path for path in entries(place.root) if path.name not in (place.lock.name, place.public.name)]
    if not others and place.lock.exists():
        place.lock.unlink()
    try:
        place.root.rmdir()
    except OSError:
        return
