"""What must never lie on the node, and where a session of the renter could have left it."""
from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Iterator, Mapping
from pathlib import Path

from tests.payload.search import hits, newer_files
from tests.scenario.lab import Lab, Laptop

SHARED = (Path("/tmp"), Path("/var/tmp"), Path("/dev/shm"))


def secret_needles(lab: Lab, laptop: Laptop, run: str) -> dict[str, bytes]:
    """The run's keys and canary, the wallet's key and the laptop's signing key, in the spellings they have."""
    found: dict[str, bytes] = {}
    for name, data in laptop.secrets(run).items():
        found |= spellings(name, data)
    found |= spellings("wallet", Path(lab.facts["money"]["renter_key"]).read_bytes())
    with contextlib.suppress(FileNotFoundError):
        found |= spellings("controller", (laptop.state / "controller.key").read_bytes())
    return found


def spellings(name: str, data: bytes) -> dict[str, bytes]:
    """A key as it stands in its file, and as bytes: what a program that handles it would write."""
    if b"OPENSSH PRIVATE KEY" in data:
        from cryptography.hazmat.primitives import serialization as ser
        key = ser.load_ssh_private_key(data, None)
        seed = key.private_bytes(ser.Encoding.Raw, ser.PrivateFormat.Raw, ser.NoEncryption())
        return {f"{name}: seed": seed, f"{name}: hex": seed.hex().encode(), f"{name}: text": data.splitlines()[-2]}
    text = data.strip().removeprefix(b"0x")
    found = {f"{name}: text": text}
    with contextlib.suppress(ValueError):
        found[f"{name}: bytes"] = bytes.fromhex(text.decode("ascii"))
    return found


def seen(lab: Lab, needles: Mapping[str, bytes], since: float = 0) -> list[tuple[str, Path]]:
    """Every needle in the sandbox, in what the renter's user wrote elsewhere, and in its processes' arguments and
    environment."""
    return hits([*newer_files([lab.sandbox], since), *_elsewhere(lab, since), *_processes(lab)], needles)


def _elsewhere(lab: Lab, since: float) -> Iterator[Path]:
    uid = lab.node.uid
    if uid is None:                      # then the sandbox is all that is the renter's alone
        return
    for root in SHARED:
        for folder, names, files in os.walk(root):
            names[:] = [n for n in names if _owner(Path(folder, n)) in (uid, None) or folder != str(root)]
            for name in files:
                path = Path(folder, name)
                with contextlib.suppress(OSError):
                    facts = path.lstat()
                    if facts.st_uid == uid and stat.S_ISREG(facts.st_mode) and facts.st_ctime >= since:
                        yield path


def _owner(path: Path) -> int | None:
    try:
        return path.lstat().st_uid
    except OSError:
        return None


def _processes(lab: Lab) -> Iterator[Path]:
    for pid in lab.of_renter():
        yield from (Path(f"/proc/{pid}/cmdline"), Path(f"/proc/{pid}/environ"))
