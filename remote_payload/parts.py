"""Cargo from the laptop: files of our names, in parts of 8 MiB, each checked on arrival and again as a whole.

A file grows beside its place (parts/<name>) and gets its name only when all of it has the digest that was announced.
Several agents may put parts of one file at once. It must not know what the files hold.
"""
from __future__ import annotations

import hashlib
import os
from pathlib import Path
from typing import Any

from remote_payload.frames import Refused
from remote_payload.overwrite import destroy
from remote_payload.workspace import (
    GET_NAME,
    PART_BYTES,
    PUT_NAMES,
    Tell,
    Workspace,
    bare,
    digest_bytes,
    digest_file,
    open_plain,
    sync_folder,
)

SIZE_MAX = 1 << 44
SPARE = 64 * 1024 * 1024                 # what must stay free on the disk beside the cargo
READ_MAX = 1024 * 1024


def have(place: Workspace, header: dict[str, Any], tell: Tell) -> list[int]:
    """Indexes of the parts that lie here already, by digest. Refused no-space when the rest would not fit."""
    name, size = put_name(header), whole(header, "size", SIZE_MAX)
    first, digests = whole(header, "first", SIZE_MAX, 0), header.get("digests")
    if whole(header, "parts", SIZE_MAX) != -(-size // PART_BYTES) or not isinstance(digests, list):
        raise Refused("bad-request", "the number of parts does not go with the size")
    source = _source(place, name)
    free = os.statvfs(place.private)
    if size - _blocks(source) + SPARE > free.f_bavail * free.f_frsize:
        raise Refused("no-space", "the disk is too full")
    found = []
    for number, digest in enumerate(digests):
        tell(number, len(digests), "reading")
        if source is not None and _part_digest(source, first + number, size) == "sha256:" + bare(digest):
            found.append(first + number)
    return found


def put(place: Workspace, header: dict[str, Any], body: bytes | bytearray) -> dict[str, Any]:
    """Lays one part at its place and reads it back."""
    name, index, digest = put_name(header), whole(header, "index", SIZE_MAX // PART_BYTES), header.get("sha256", "")
    if digest_bytes(body) != "sha256:" + bare(digest):
        raise Refused("digest", "the part does not have the digest that it was sent with")
    if (place.private / name).exists():
        return {"index": index, "sha256": digest}   # closed already: the whole was checked
    fd = os.open(place.parts / name, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    try:
        _write_all(fd, body, index * PART_BYTES)
        os.fdatasync(fd)
        if os.pread(fd, len(body), index * PART_BYTES) != body:
            raise Refused("digest", "the part does not read back as written")
    except OSError:
        raise Refused("no-space", "the part cannot be written") from None
    finally:
        os.close(fd)
    return {"index": index, "sha256": digest}


def close(place: Workspace, header: dict[str, Any], tell: Tell) -> dict[str, Any]:
    """Gives the file its name when the whole of it is right."""
    name, size, digest = put_name(header), whole(header, "size", SIZE_MAX), header.get("sha256", "")
    bare(digest)
    ready, growing = place.private / name, place.parts / name
    source = _source(place, name)
    if source is None:
        raise Refused("digest", "no part of this file is here")
    if source == growing:
        os.truncate(growing, size)
    if source.stat().st_size != size or digest_file(source, tell) != digest:
        raise Refused("digest", "the file does not have the digest that was announced")
    if source == growing:
        growing.replace(ready)
        sync_folder(place.private)
    return {"sha256": digest, "size": size}


def discard(place: Workspace, header: dict[str, Any]) -> None:
    """Removes a put file, grown or growing. Nothing there is success."""
    name = put_name(header)
    for path in (place.private / name, place.parts / name):
        destroy(path)


def get(place: Workspace, header: dict[str, Any]) -> tuple[dict[str, Any], bytes]:
    """A stretch of a published file."""
    name, offset, length = header.get("name"), whole(header, "offset", SIZE_MAX), whole(header, "length", READ_MAX)
    if not isinstance(name, str) or not GET_NAME.fullmatch(name):
        raise Refused("bad-request", "not a name of a published file")
    try:
        with open_plain(place.job / name) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(offset)
            return {"offset": offset, "size": size}, file.read(length)
    except OSError:
        raise Refused("bad-request", f"{name} is not there") from None


def put_name(header: dict[str, Any]) -> str:
    name = header.get("name")
    if name not in PUT_NAMES:
        raise Refused("bad-request", "not a name of a file that is sent here")
    return str(name)


def whole(header: dict[str, Any], field: str, most: int, default: int | None = None) -> int:
    """A count from a header, 0 … most. Refused names the field."""
    value = header.get(field, default)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= most:
        raise Refused("bad-request", f"{field} is not a number that can be")
    return value


def _source(place: Workspace, name: str) -> Path | None:
    return next((path for path in (place.private / name, place.parts / name) if path.is_file()), None)


def _blocks(path: Path | None) -> int:
    """Bytes that a file takes on the disk; one with holes takes less than its length."""
    return path.stat().st_blocks * 512 if path is not None else 0


def _part_digest(path: Path, index: int, size: int) -> str:
    seen = hashlib.sha256()
    with open_plain(path) as file:
        file.seek(index * PART_BYTES)
        left = min(PART_BYTES, size - index * PART_BYTES)
        while left > 0:
            block = file.read(min(left, 1 << 20))
            if not block:
                return ""
            seen.update(block)
            left -= len(block)
    return "sha256:" + seen.hexdigest()


def _write_all(fd: int, body: bytes | bytearray, offset: int) -> None:
    view = memoryview(body)
    while view:
        written = os.pwrite(fd, view, offset)
        view, offset = view[written:], offset + written
