"""Our copy of a job's records: its length is the cursor, its lines were all checked before they were written.

It must not talk to the node. A line that is too long, out of order or not JSON is `BadRecords`: this file never holds
one, so a person may read it and the next session may trust it.
"""
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ..domain.document import Json, parse
from ..domain.names import Digest, Instant
from ..domain.progress import RECORD_MAX, Published, Record, RecordKind
from ..domain.text import clean
from .client import DIGEST

FILE = "records.jsonl"
PUBLISHED_NAME = re.compile(r"(?:checkpoint-[0-9]{1,9}|adapter|evaluation|samples)\.age")
KINDS = {kind.value: kind for kind in RecordKind}


class BadRecords(ValueError):
    """The node's records break the rules of the file; nothing of the line was kept."""


class RecordFile:
    """`home`/records.jsonl. One writer."""

    def __init__(self, home: Path, most: int) -> None:
        """`most`: lines the job may write in all."""
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._most = most
        self._fd = os.open(home / FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self.seq, self.error = 0, None
        self.offset = self._read_back()

    error: str | None                    # the newest error record, as one line

    def _read_back(self) -> int:
        """Length in whole lines; a torn last line is cut off."""
        data = b""
        while chunk := os.pread(self._fd, 1 << 20, len(data)):
            data += chunk
        whole = data[:data.rfind(b"\n") + 1]
        os.ftruncate(self._fd, len(whole))
        self._known = [self._checked(line) for line in whole.splitlines()]
        return len(whole)

    def known(self) -> Iterator[Record]:
        """What was here already, oldest first."""
        return iter(self._known)

    def add(self, lines: bytes) -> Iterator[Record]:
        """Check, write and yield one line after the other. `lines` begins at `offset` and ends with a line."""
        if lines and not lines.endswith(b"\n"):
            raise BadRecords("half a line")
        for line in lines.splitlines(keepends=True):
            record = self._checked(line.rstrip(b"\n"))
            os.pwrite(self._fd, line, self.offset)
            self.offset += len(line)
            yield record

    def _checked(self, line: bytes) -> Record:
        record = read(line)
        if record.seq != self.seq + 1:
            raise BadRecords(f"record {record.seq} after {self.seq}")
        if record.seq > self._most:
            raise BadRecords(f"more than {self._most} records")
        self.seq = record.seq
        if record.kind is RecordKind.ERROR:
            self.error = " ".join(filter(None, (record.get("type"), record.get("where"), record.get("phase"))))
        return record

    def close(self) -> None:
        os.close(self._fd)


def read(line: bytes) -> Record:
    """One record. Every text is made harmless here, once."""
    if len(line) > RECORD_MAX:
        raise BadRecords(f"a record of {len(line)} bytes")
    try:
        tree = parse(line)
    except ValueError as error:
        raise BadRecords("a record that is not JSON") from error
    if not isinstance(tree, dict) or not _plain(tree):
        raise BadRecords("a record of another shape")
    data = tuple(sorted((clean(k, 40), clean(v)) for k, v in tree["data"].items()))
    return Record(tree["seq"], Instant(tree["at"]), KINDS.get(tree["kind"], RecordKind.OTHER), data)


def _plain(tree: dict[str, Json]) -> bool:
    numbers = all(isinstance(tree.get(n), int) and not isinstance(tree[n], bool) and 0 <= tree[n] < 1 << 53
                  for n in ("seq", "at"))
    data = tree.get("data")
    return numbers and isinstance(tree.get("kind"), str) and isinstance(data, dict) and all(
        isinstance(value, str) for value in data.values())


def published(record: Record, largest: int) -> Published | None:
    """The file a record announces; None where it breaks the rules for names, sizes and digests."""
    name, size, sha256 = (record.get(k) for k in ("name", "bytes", "sha256"))
    if record.kind is not RecordKind.PUBLISHED or not PUBLISHED_NAME.fullmatch(name):
        return None
    if not re.fullmatch(r"[0-9]{1,15}", size) or not 0 < int(size) <= largest or not DIGEST.fullmatch(sha256):
        return None
    return Published(name, int(size), Digest(sha256))
