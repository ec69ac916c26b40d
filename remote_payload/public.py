"""The public parts, which a later lease may use again: pinned packages and public model weights.

Each has a mark beside or inside it that was written when it was complete and checked. Without a mark it does not
count and is made anew. The marks guard against cuts and rot, not against the node's owner.
"""
from __future__ import annotations

import base64
import csv
import hashlib
import random
from pathlib import Path
from typing import Any, NamedTuple

from remote_payload.overwrite import entries, remove_public
from remote_payload.workspace import COMMIT, ENVIRONMENT, Tell, Workspace, digest_file, read_json

MARK = "sealtune.json"
ENVIRONMENT_SCHEMA, MODEL_SCHEMA = "sealtune/environment/1", "sealtune/model/1"
SAMPLE = 64                              # files that a reused environment is checked by
TOOLS = ("python", ".uv-cache", "tools")  # what the installer needed beside the environments


class Part(NamedTuple):
    """One public part. `name`: the word that an order keeps it by. `digest` "" where it is not complete."""

    name: str
    place: Path
    digest: str


def parts(place: Workspace) -> list[Part]:
    """What lies there, known or not; anything unknown keeps no name and so never stays."""
    found = []
    for path in entries(place.public):
        if ENVIRONMENT.fullmatch(path.name):
            found.append(Part("environment", path, _digest(path / MARK, "environment")))
        elif path != place.models:
            found.append(Part("environment" if path.name == "python" else "", path, ""))
    for path in entries(place.models):
        if path.is_dir() and COMMIT.fullmatch(path.name):
            found.append(Part("base model", path, _digest(model_mark(place, path.name), "digest")))
        elif not (path.name.endswith(".json") and (place.models / path.name[:-5]).is_dir()):
            found.append(Part("", path, ""))
    return found


def intact(place: Workspace, part: Part) -> bool:
    """May it stay? A model: exactly the files of its table, each by digest. An environment: some by their records."""
    if part.place.name == "python":
        return True                      # the interpreter of the environments; looked through like everything else
    if part.name == "base model":
        table = (complete_model(place, part.place.name) or {}).get("files")
        found = {str(p.relative_to(part.place)): p for p in part.place.rglob("*") if p.is_symlink() or not p.is_dir()}
        if not isinstance(table, list) or {str(name) for name, _ in table} != set(found):
            return False
        return all(_has(found[name], digest) for name, digest in table)
    packages = site_packages(part.place)
    try:
        return bool(part.digest) and packages is not None and sound(packages, recorded(packages), SAMPLE)
    except (OSError, ValueError):
        return False


def _has(path: Path, digest: str) -> bool:
    try:
        return digest_file(path) == "sha256:" + digest
    except OSError:
        return False


def site_packages(folder: Path) -> Path | None:
    found = sorted(folder.glob("lib/python3*/site-packages"))
    return found[0] if len(found) == 1 else None


def remove(place: Workspace, part: Part, tell: Tell) -> tuple[int, int]:
    """(files, bytes) that went with a part and its mark."""
    if part.place.parent == place.models:
        remove_public_file(model_mark(place, part.place.name))
    if part.place.is_dir() and not part.place.is_symlink():
        return remove_public(part.place, tell)
    return remove_public_file(part.place)


def remove_public_file(path: Path) -> tuple[int, int]:
    try:
        size = path.lstat().st_size
        path.unlink()
    except OSError:
        return 0, 0
    return 1, size


def measure(folder: Path) -> tuple[int, int]:
    """(files, bytes) below a folder."""
    files = size = 0
    for path in folder.rglob("*"):
        if not path.is_dir():
            files, size = files + 1, size + path.lstat().st_size
    return files, size


def model_mark(place: Workspace, commit: str) -> Path:
    return place.models / (commit + ".json")


def complete_model(place: Workspace, commit: str) -> dict[str, Any] | None:
    """The mark of a complete base model, or None."""
    return read_json(model_mark(place, commit)) if (place.models / commit).is_dir() else None


def _digest(mark: Path, field: str) -> str:
    return str((read_json(mark) or {}).get(field, ""))


# ---- the environment by its own records -----------------------------------------------------------------


def recorded(packages: Path) -> list[tuple[str, str, str]]:
    """(distribution, path, sha256 in urlsafe base64) of every file that a wheel brought into site-packages."""
    found = []
    for info in entries(packages):
        if info.name.endswith(".dist-info"):
            with (info / "RECORD").open(newline="") as file:
                rows = [row for row in csv.reader(file) if len(row) == 3]
            found += [(info.name, path, value[7:]) for path, value, _ in rows
                      if value.startswith("sha256=") and not path.startswith("../")
                      and not path.startswith(info.name + "/")]
    return found


def environment_digest(rows: list[tuple[str, str, str]]) -> str:
    """One digest over what the wheels' own records say; the same wheels give the same digest anywhere."""
    text = "\n".join(sorted("\t".join(row) for row in rows))
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def sound(packages: Path, rows: list[tuple[str, str, str]], most: int) -> bool:
    """Do `most` files, drawn at random, still have the digest of their record?"""
    drawn = random.SystemRandom().sample(rows, min(most, len(rows)))
    return all(_as_recorded(packages / path, value) for _, path, value in drawn)


def _as_recorded(path: Path, value: str) -> bool:
    try:
        raw = bytes.fromhex(digest_file(path)[7:])
    except OSError:
        return False
    return base64.urlsafe_b64encode(raw).rstrip(b"=").decode() == value
