"""Looking for the canaries: texts of the private data that must be nowhere on this node in the clear.

Walked: every place that this user could write to, files changed since the lease began. What was left out is counted by
reason. A scan proves nothing about what it could not read; a decoy, found first and gone later, shows that it looks.
"""
from __future__ import annotations

import os
import stat
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from remote_payload.media import mounts
from remote_payload.workspace import Tell, plain

BLOCK = 1 << 20
PLACES_MAX = 20
OPEN_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
TEMPORARY = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108  looked through, never written to
UNREAL = {"proc", "sysfs", "devpts", "cgroup", "cgroup2", "securityfs", "debugfs", "tracefs", "pstore", "bpf", "mqueue",
          "configfs", "fusectl", "efivarfs", "binfmt_misc", "autofs", "nsfs", "hugetlbfs", "devtmpfs", "squashfs",
          "iso9660", "erofs", "rpc_pipefs"}


class Root(NamedTuple):
    """`required`: the wipe is not complete without it. `shown`: how it is called in documents."""

    path: Path
    required: bool
    shown: str


def roots(home: Path) -> list[Root]:
    """Home and the temporary places first, then every other writable file system of the node."""
    wanted = [(home, "~")] + [(Path(p), p) for p in TEMPORARY] + [(Path(f"/run/user/{os.geteuid()}"), "/run/user")]
    if os.environ.get("TMPDIR"):
        wanted.append((Path(os.environ["TMPDIR"]), "TMPDIR"))
    found = [Root(Path(os.path.realpath(path)), True, shown) for path, shown in wanted if path.is_dir()]
    known = {str(root.path) for root in found}
    for mount in mounts():
        real = mount.kind not in UNREAL and not mount.point.startswith(("/sys/", "/proc/"))
        if real and "rw" in mount.options and mount.point not in known and os.path.isdir(mount.point):  # noqa: PTH112
            known.add(mount.point)
            found.append(Root(Path(mount.point), False, plain(mount.point)))
    return found


def laptop() -> list[Path]:
    """In a lab the laptop is this machine and perhaps this user: its own folder is no part of the node."""
    place = os.environ.get("SEALTUNE_LAB_LAPTOP", "")
    return [Path(place)] if place and Path(place).is_dir() else []


class Scanner:
    """One scan. `deadline`: time.monotonic() at which it stops; `skip`: folders that are left out; `tell`: hears of every
    file."""

    def __init__(self, patterns: list[bytes], decoy: bytes, since: float, deadline: float, skip: list[Path],
                 tell: Tell = lambda done, of, what: None) -> None:
        self._tell, self._seen = tell, 0
        self.patterns, self.decoy = patterns, decoy
        self.since, self.deadline = since - 2, deadline
        self._overlap = max(map(len, [*patterns, decoy])) - 1
        self._walked = {(path.stat().st_dev, path.stat().st_ino) for path in skip}
        self.decoy_found = False
        self.hits = 0
        self.places: list[str] = []
        self.roots: list[dict[str, Any]] = []

    def walk(self, root: Root, seconds: float) -> None:
        """Looks through one root for at most so many seconds, and never beyond the scan's own end."""
        row: dict[str, Any] = {"root": root.shown, "required": root.required, "complete": True, "files": 0, "bytes": 0,
                               "skipped": {}}
        until = min(self.deadline, time.monotonic() + seconds)
        for entry in self._changed(root.path, row, until):
            self._file(entry, root, row, until)
        self.roots.append(row)

    def open_files(self, pids: list[int]) -> int:
        """Deleted files that processes of ours still hold open; how many there were."""
        count = 0
        row: dict[str, Any] = {"root": "deleted, still open", "required": True, "complete": True, "files": 0,
                               "bytes": 0, "skipped": {}}
        for path in held_open(pids):
            count += 1
            try:
                fd = os.open(path, OPEN_FLAGS & ~os.O_NOFOLLOW)
            except OSError:
                _count(row["skipped"], "unreadable")
                continue
            self._look(fd, "a deleted file that is still open", row, self.deadline)
        self.roots.append(row)
        return count

    def row(self, when: str) -> dict[str, Any]:
        return {"when": when, "complete": all(r["complete"] for r in self.roots if r["required"]),
                "patterns": len(self.patterns), "decoy_found": self.decoy_found, "hits": self.hits,
                "places": self.places, "roots": self.roots}

    def _changed(self, root: Path, row: dict[str, Any], until: float) -> Iterator[os.DirEntry[str]]:
        """Files below `root`, on its file system, changed since the lease began. Each folder is walked once."""
        stack = [str(root)]
        device = root.lstat().st_dev
        while stack:
            folder = stack.pop()
            for entry in self._entries(folder, row["skipped"]):
                try:
                    facts = entry.stat(follow_symlinks=False)
                except OSError:
                    continue             # gone meanwhile
                if stat.S_ISDIR(facts.st_mode):
                    if facts.st_dev == device:
                        stack.append(entry.path)
                elif max(facts.st_ctime, facts.st_mtime) >= self.since and _writable(facts):
                    yield entry
            if time.monotonic() > until and stack:
                row["complete"] = False
                return

    def _entries(self, folder: str, skipped: dict[str, int]) -> list[os.DirEntry[str]]:
        try:
            facts = os.lstat(folder)
            if (facts.st_dev, facts.st_ino) in self._walked:
                return []
            self._walked.add((facts.st_dev, facts.st_ino))
            with os.scandir(folder) as found:
                return list(found)
        except OSError:
            _count(skipped, "unreadable folder")
            return []

    def _file(self, entry: os.DirEntry[str], root: Root, row: dict[str, Any], until: float) -> None:
        if not stat.S_ISREG(entry.stat(follow_symlinks=False).st_mode):
            _count(row["skipped"], "not a file")
            return
        try:
            fd = os.open(entry.path, OPEN_FLAGS)
        except OSError:
            _count(row["skipped"], "unreadable")
            return
        shown = root.shown + entry.path[len(str(root.path)):]
        self._look(fd, shown, row, until)
        if any(pattern in os.fsencode(entry.name) for pattern in self.patterns):
            self._hit(shown)

    def _look(self, fd: int, shown: str, row: dict[str, Any], until: float) -> None:
        """Reads one file in blocks that overlap by the longest pattern. Closes it."""
        tail, found = b"", False
        with os.fdopen(fd, "rb", buffering=0) as file:
            row["files"] += 1
            self._seen += 1
            self._tell(self._seen, 0, "scanning files")
            while time.monotonic() <= until:
                try:
                    block = file.read(BLOCK)
                except OSError:
                    _count(row["skipped"], "unreadable")
                    break
                if not block:
                    break
                row["bytes"] += len(block)
                text = tail + block
                found = found or any(pattern in text for pattern in self.patterns)
                self.decoy_found = self.decoy_found or self.decoy in text
                tail = text[-self._overlap:]
            else:
                row["complete"] = False
        if found:
            self._hit(shown)

    def _hit(self, shown: str) -> None:
        """A place is named in documents, so what was looked for must not stand in its name."""
        self.hits += 1
        name = os.fsencode(shown)
        for pattern in self.patterns:
            name = name.replace(pattern, b"(canary)")
        if len(self.places) < PLACES_MAX:
            self.places.append(plain(name.decode("ascii", "replace")))


def spellings(canary: bytes) -> list[bytes]:
    """How a text can lie on a disk: as it is, in two bytes a letter, as hex."""
    text = canary.decode("utf-8", "replace")
    return [canary, text.encode("utf-16-le"), canary.hex().encode()]


def processes() -> tuple[list[int], int]:
    """(processes of this user, how many of them cannot be looked into). We ourselves do not count."""
    ours, closed = [], 0
    for path in Path("/proc").iterdir():
        if not path.name.isdigit() or int(path.name) == os.getpid():
            continue
        try:
            status = (path / "status").read_text(errors="replace")
        except OSError:
            continue                     # ended while we looked
        if f"\nUid:\t{os.geteuid()}\t" in status:
            ours.append(int(path.name))
            closed += not os.access(path / "fd", os.R_OK)
    return ours, closed


def held_open(pids: list[int]) -> Iterator[str]:
    """Deleted regular files on a file system that processes hold open; memory files are not on one."""
    for pid in pids:
        try:
            numbers = os.listdir(f"/proc/{pid}/fd")  # noqa: PTH208  numbers, no paths
        except OSError:
            continue                     # counted as closed to us
        for number in numbers:
            path = f"/proc/{pid}/fd/{number}"
            try:
                target = os.readlink(path)  # noqa: PTH115  Python 3.8
                regular = stat.S_ISREG(os.stat(path).st_mode)  # noqa: PTH116
            except OSError:
                continue
            if target.endswith(" (deleted)") and regular and not target.startswith("/memfd:"):
                yield path


def _writable(facts: os.stat_result) -> bool:
    return os.geteuid() in (0, facts.st_uid) or bool(facts.st_mode & 0o022)


def _count(skipped: dict[str, int], reason: str) -> None:
    skipped[reason] = skipped.get(reason, 0) + 1
