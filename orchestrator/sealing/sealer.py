"""The Sealer port: one sealed file and, beside it, the table of its parts. A table exists only for a whole file."""
from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from ..domain.document import canonical, decode, encode, sha256, sha256_of
from ..domain.names import Digest
from ..domain.spool import PART_BYTES, Spool
from ..errors import BadInput, DoesNotOpen, SealtuneError, Transient
from .child import age

LEVELS = ((64 * 2**20, 6), (1024 * 2**20, 3))    # small files: time does not matter, the uplink does
LEVEL_BEYOND = 1
CHUNK = 1 << 20
AGE_OVERHEAD = 1 << 16                           # header and chunk tags of any file that fits in memory
MOST_RESEALED = 4 * 2**30
GONE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


class AgeSealer:
    """Seals to X25519 recipients ("age1…"); nothing but these is accepted, plugins in particular."""

    def seal(self, source: Path, folder: Path, name: str, recipient: str) -> Spool:
        """Compress (zstd), encrypt (age), digest by parts into `folder/name`. An existing complete spool for the
        same recipient is returned as it is. BadInput: `source` cannot be read."""
        if found := _existing(folder, name, recipient):
            return found
        with _reading(source) as plain, _part(folder, name) as part:
            with age(["seal", recipient], name, part.fileno()) as stdin:
                _compress(plain, stdin)
            return _finish(part, folder, name, recipient)

    def reseal(self, sealed: Path, identity: bytes, folder: Path, name: str, recipient: str) -> Spool:
        """Open and seal again without plaintext on disk. Not recompressed. DoesNotOpen, for good and at once: the
        file came from a node that is gone, and nobody will bring other bytes. What this laptop lacks: SealtuneError."""
        if found := _existing(folder, name, recipient):
            return found
        try:
            return _resealed(sealed, identity, folder, name, recipient)
        except Transient as problem:
            raise DoesNotOpen(str(problem)) from problem

    def discard(self, folder: Path) -> None:
        """Remove every spool of `folder`, half ones too, and the folder when nothing else is in it."""
        if not folder.is_dir():
            return
        for path in folder.iterdir():
            if path.name.endswith((".age", ".age.json", ".age.part", ".age.json.part")):
                path.unlink()
        with contextlib.suppress(OSError):       # something else lies there: it is not ours to remove
            folder.rmdir()


def open_sealed(path: Path, identity: bytes, most: int) -> bytes:
    """The plaintext of a sealed file of at most `most` bytes. Transient: missing, too large, damaged, another's key."""
    with _sealed(path, most) as fd:
        plain = _opened(fd, path.name, identity)
    if len(plain) > most:
        raise Transient(f"{path.name} holds {len(plain)} bytes, at most {most} are taken")
    return plain


def _resealed(sealed: Path, identity: bytes, folder: Path, name: str, recipient: str) -> Spool:
    with _sealed(sealed, MOST_RESEALED) as fd, _part(folder, name) as part:
        with age(["reseal", str(fd), recipient], sealed.name, part.fileno(), keep=[fd]) as stdin:
            stdin.write(identity)
        return _finish(part, folder, name, recipient)


def _opened(fd: int, name: str, identity: bytes) -> bytes:
    """All that the child writes: less than the sealed file has, whose size was looked at before."""
    read, write = os.pipe()
    plain = b""
    with os.fdopen(read, "rb") as source, os.fdopen(write, "wb") as sink:
        with age(["open", str(fd)], name, write, keep=[fd]) as stdin:
            sink.close()                         # the child's copy is the last one: its end is the end of file
            stdin.write(identity)
            stdin.close()
            plain = source.read()
    return plain


# ---- files ------------------------------------------------------------------------------------------------


@contextlib.contextmanager
def _reading(source: Path) -> Iterator[IO[bytes]]:
    try:
        file = source.open("rb")
    except OSError as problem:
        raise BadInput(f"{source}: {(problem.strerror or 'cannot be read').lower()}") from problem
    with file:
        yield file


@contextlib.contextmanager
def _sealed(path: Path, most: int) -> Iterator[int]:
    """A descriptor of a sealed file whose plaintext is at most `most` bytes: age does not compress. Transient where it is
    gone or no file of ours; SealtuneError where it is there and this laptop cannot read it."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError as problem:
        what = f"{path.name}: {(problem.strerror or 'cannot be read').lower()}"
        if problem.errno in GONE:
            raise Transient(what) from problem
        raise SealtuneError(what, hint=f"may you read {path}, and is its disk well?") from problem
    try:
        size = os.fstat(fd).st_size
        if size > most + most // 1024 + AGE_OVERHEAD:
            raise Transient(f"{path.name} has {size} bytes, at most {most} are taken")
        yield fd
    finally:
        os.close(fd)


@contextlib.contextmanager
def _part(folder: Path, name: str) -> Iterator[IO[bytes]]:
    """`name`.part, new and 0600; gone again if the body fails."""
    if Path(name).name != name or not name.endswith(".age"):
        raise ValueError(f"not the name of a sealed file: {name!r}")
    path = folder / f"{name}.part"
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        path.unlink(missing_ok=True)
        with os.fdopen(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "r+b") as file:
            yield file
    except OSError as problem:
        raise SealtuneError(f"{name} cannot be written: {(problem.strerror or 'no reason given').lower()}",
                            hint="make room on this disk") from problem
    finally:
        with contextlib.suppress(OSError):       # said already by what failed before
            path.unlink(missing_ok=True)


def _compress(plain: IO[bytes], into: IO[bytes]) -> None:
    import zstandard
    size = os.fstat(plain.fileno()).st_size
    level = next((level for most, level in LEVELS if size <= most), LEVEL_BEYOND)
    made = zstandard.ZstdCompressor(level=level, threads=-1, write_checksum=True)
    with made.stream_writer(into, closefd=False) as stream:
        while piece := plain.read(CHUNK):
            stream.write(piece)


def _finish(part: IO[bytes], folder: Path, name: str, recipient: str) -> Spool:
    """Digest what was written, make it durable under its name, then write the table."""
    part.seek(0)
    whole, parts, size = hashlib.sha256(), list[Digest](), 0
    while piece := part.read(PART_BYTES):
        whole.update(piece)
        parts.append(sha256(piece))
        size += len(piece)
    os.fsync(part.fileno())
    (folder / f"{name}.part").replace(folder / name)
    spool = Spool(name, Digest("sha256:" + whole.hexdigest()), size, tuple(parts), str(folder))
    _write_table(folder / f"{name}.json", {"recipient": recipient, "spool": encode(spool)[0]})
    return spool


# ---- the table --------------------------------------------------------------------------------------------


def _write_table(path: Path, table: dict[str, Any]) -> None:
    part = path.with_name(f"{path.name}.part")
    part.unlink(missing_ok=True)
    with os.fdopen(os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600), "wb") as file:
        file.write(canonical(table))
        file.flush()
        os.fsync(file.fileno())
    part.replace(path)


def _existing(folder: Path, name: str, recipient: str) -> Spool | None:
    """The spool that lies there, if its table is of this recipient and its bytes are still those of the table."""
    try:
        table = json.loads((folder / f"{name}.json").read_bytes())
        spool = decode(Spool, table["spool"], {"folder": str(folder)})
        if table["recipient"] != recipient or (folder / name).stat().st_size != spool.size:
            return None
        with (folder / name).open("rb") as file:
            whole = sha256_of(file)
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return spool if spool.sha256 == whole else None
