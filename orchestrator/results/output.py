"""The output folder: it appears whole, under a name that the user chose, and never over something else.

What is in it may be handed on. The evaluation shows held-out rows, so it lies beside the folder, under its name.
"""
from __future__ import annotations

import contextlib
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from ..domain.names import RunId
from ..errors import BadInput

MARKER = ".sealtune-run"


def evaluation_of(folder: Path) -> Path:
    """Where the evaluation of the adapter in this folder lies."""
    return folder.with_name(f"{folder.name}.evaluation.json")


def check_output(path: Path, run: RunId | None = None) -> None:
    """BadInput when the adapter could not be put there. Asked before money moves; makes nothing."""
    if not _free(path, run):
        there = path if path.is_symlink() or (path.exists() and not _empty(path)) else evaluation_of(path)
        raise BadInput(f"output {there} is there already and not of this run",
                       hint="name a new folder with `output:` in the run file, or move the old one away")
    parent = next(folder for folder in path.absolute().parents if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK | os.X_OK):
        raise BadInput(f"output {path} cannot be made in {parent}", hint="name another folder with `output:`")


def _free(path: Path, run: RunId | None) -> bool:
    """Nothing there or an empty folder, and no evaluation beside it; or what this very run put there before."""
    beside = evaluation_of(path)
    if run is not None and _owner(path) == run:
        return True
    if beside.is_symlink() or beside.exists():
        return False
    return not (path.is_symlink() or path.exists()) or _empty(path)


def _empty(path: Path) -> bool:
    """An empty folder, perhaps behind a link."""
    return path.is_dir() and not any(path.iterdir())


def _owner(path: Path) -> RunId | None:
    try:
        return RunId((path / MARKER).read_text(encoding="ascii").strip())
    except (OSError, ValueError):
        return None


@contextlib.contextmanager
def new_folder(output: Path, run: RunId) -> Iterator[Path]:
    """A folder to fill, next to where it will be; gone again if the body fails. `put` gives it its name."""
    output.parent.mkdir(parents=True, exist_ok=True)
    folder = output.parent / f".{output.name}.{run}.part"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(mode=0o700)
    try:
        write(folder / MARKER, run.encode() + b"\n")
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)


def put(folder: Path, output: Path, run: RunId, evaluation: bytes) -> Path:
    """Give a filled folder its name and return it; then the evaluation lies beside it. If `output` was taken meanwhile,
    the run's name is added: what was paid for is not lost to a folder in the way."""
    place = output if _free(output, run) else output.with_name(f"{output.name}-{run}")
    old = place.with_name(f".{place.name}.{run}.old")
    shutil.rmtree(old, ignore_errors=True)
    if place.is_dir() and any(place.iterdir()):              # ours, from an attempt that was cut off before its row
        place.replace(old)
    folder.replace(place)
    shutil.rmtree(old, ignore_errors=True)
    _put_beside(evaluation_of(place), evaluation, run)
    _make_durable(place.parent)
    return place


def _put_beside(place: Path, data: bytes, run: RunId) -> None:
    """The folder is ours by now, and by it so is what lies under its name."""
    draft = place.with_name(f".{place.name}.{run}.part")
    draft.unlink(missing_ok=True)
    try:
        write(draft, data)
        draft.replace(place)
    finally:
        draft.unlink(missing_ok=True)


def write(path: Path, data: bytes) -> None:
    """A new file, 0600, on the disk when it returns."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _make_durable(folder: Path) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)
