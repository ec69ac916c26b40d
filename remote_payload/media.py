"""What the node's storage is: facts that decide how much an overwritten file is worth. Read only, nothing assumed."""
from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NamedTuple

from remote_payload.workspace import plain, read_text

COW = {"btrfs", "zfs", "bcachefs", "overlay", "nilfs2", "f2fs", "ubifs"}
MEMORY = {"tmpfs", "ramfs"}


class Mount(NamedTuple):
    point: str
    kind: str
    options: tuple[str, ...]
    device: str                          # "major:minor"


def mounts() -> list[Mount]:
    """Every mount of this process, as the kernel lists them."""
    found = []
    for line in read_text("/proc/self/mountinfo").splitlines():
        left, _, right = line.partition(" - ")
        fields, rest = left.split(), right.split()
        if len(fields) >= 6 and len(rest) >= 3:
            options = tuple(fields[5].split(",")) + tuple(rest[2].split(","))
            found.append(Mount(_plain_path(fields[4]), rest[0], options, fields[2]))
    return found


def _plain_path(text: str) -> str:
    """mountinfo writes blanks as \\040."""
    return text.replace("\\040", " ").replace("\\011", "\t").replace("\\134", "\\")


def under(path: Path) -> Mount | None:
    """The mount that holds a path: the longest prefix, the last of equals."""
    real = os.path.realpath(path)
    best: Mount | None = None
    for mount in mounts():
        inside = real == mount.point or real.startswith(mount.point.rstrip("/") + "/")
        if inside and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def facts(what: str, path: Path) -> dict[str, Any]:
    """One row of the document. None where the kernel does not say."""
    mount = under(path)
    if mount is None:
        return {"what": what, "kind": "unknown", "options": "", "cow": None, "discard": None, "rotational": None}
    return {"what": what, "kind": plain(mount.kind, 32), "options": plain(",".join(mount.options)),
            "cow": mount.kind in COW, "discard": "discard" in mount.options,
            "rotational": _rotational(mount.device)}


def _rotational(device: str) -> bool | None:
    """A partition has no queue of its own; its disk is the folder above."""
    here = Path("/sys/dev/block") / device
    for folder in (here, Path(os.path.realpath(here)).parent):
        word = read_text(str(folder / "queue/rotational"), 8).strip()
        if word in ("0", "1"):
            return word == "1"
    return None


def caveats(rows: list[dict[str, Any]]) -> list[str]:
    """Ids of the fixed texts that must stand beside these facts. A fact that is not known counts as bad."""
    found = {"operator-snapshot", "memory"}
    for row in rows:
        if row["kind"] in MEMORY:
            continue
        if row["cow"] is not False:
            found.add("cow")
        if row["kind"] in ("unknown", "overlay") or "data=journal" in row["options"]:
            found.add("journal")
        if row["rotational"] is not True or row["discard"]:
            found.add("ssd")
    return sorted(found)


def swap() -> str:
    """"none", or how many swap areas there are."""
    lines = read_text("/proc/swaps").splitlines()[1:]
    return "none" if not lines else f"{len(lines)} active"


def core_pattern() -> str:
    """Where a crash would write: "file" or "pipe" (the latter does not heed our limit)."""
    return "pipe" if read_text("/proc/sys/kernel/core_pattern", 256).startswith("|") else "file"
