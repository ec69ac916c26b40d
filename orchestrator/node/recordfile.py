"""Our copy of a job's records: its length is the cursor, its lines were all checked before they were written.

It must not talk to the node. A line that is too long, out of order or not JSON is `BadRecords`: this file never holds
one, so the next session may go on behind it. It holds the node's own bytes, since their count is the cursor: whoever
shows them reads them through domain/progress.py, which makes their words harmless.
"""
from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

from ..domain.names import Digest
from ..domain.progress import BadRecords, Published, Record, RecordKind, read_record
from .client import DIGEST

FILE = "records.jsonl"
SIZE, SPARE = 512, 256 * 1024            # bytes: of an average record; for some that are longer
PUBLISHED_NAME = re.compile(r"(?:checkpoint-[0-9]{1,9}|adapter|evaluation|samples)\.age")


class RecordFile:
    """`home`/records.jsonl. One writer."""

    def __init__(self, home: Path, most: int) -> None:
        """`most`: lines the job may write in all, of SIZE bytes on average."""
        home.mkdir(parents=True, exist_ok=True, mode=0o700)
        self._most, self._room = most, most * SIZE + SPARE
        self._fd = os.open(home / FILE, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
        self.seq, self.error = 0, None
        self.offset = self._read_back()

    error: str | None                    # the newest error record, as one line

    def _read_back(self) -> int:
        """Length in whole lines; a torn last line is cut off."""
        length = 0
        for line in self._lines():
            self._checked(line)
            length += len(line) + 1
        os.ftruncate(self._fd, length)
        return length

    def _lines(self) -> Iterator[bytes]:
        """Every whole line, in little memory."""
        rest, place = b"", 0
        while chunk := os.pread(self._fd, 1 << 20, place):
            place += len(chunk)
            *whole, rest = (rest + chunk).split(b"\n")
            yield from whole

    def known(self) -> Iterator[Record]:
        """What is here already, oldest first."""
        return map(read_record, self._lines())

    def add(self, lines: bytes) -> Iterator[Record]:
        """Check, write and yield one line after the other. `lines` begins at `offset` and ends with a line, which ends
        with a line feed and nothing else."""
        *whole, rest = lines.split(b"\n")
        if rest:
            raise BadRecords("half a line")
        for line in whole:
            record = self._checked(line)
            if self.offset + len(line) >= self._room:
                raise BadRecords(f"more than {self._room} bytes of records")
            os.pwrite(self._fd, line + b"\n", self.offset)
            self.offset += len(line) + 1
            yield record

    def _checked(self, line: bytes) -> Record:
        record = read_record(line)
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


def published(record: Record, largest: int) -> Published | None:
    """The file a record announces; None where it breaks the rules for names, sizes and digests."""
    name, size, sha256 = (record.get(k) for k in ("name", "bytes", "sha256"))
    if record.kind is not RecordKind.PUBLISHED or not PUBLISHED_NAME.fullmatch(name):
        return None
    if not re.fullmatch(r"[0-9]{1,15}", size) or not 0 < int(size) <= largest or not DIGEST.fullmatch(sha256):
        return None
    return Published(name, int(size), Digest(sha256))
