"""The record file: what the job says about itself, one JSON object a line, in a form that can do no harm.

The trainer's lines are untrusted text until they have passed here: words and numbers, printable ASCII, at most
4 KiB a line, `seq` without gaps. What is not a record is dropped. It must not know how the job is started.
"""
from __future__ import annotations

import json
import os
import re
import time
from typing import Any

from remote_payload.frames import canonical
from remote_payload.workspace import Workspace, open_plain, plain

LINE_MAX = 4096
VALUE_MAX, FIELDS_MAX = 200, 24
SLACK = 64                               # the trainer's reserve for phases, checkpoints, result and error
KIND = re.compile(r"[a-z][a-z0-9_-]{0,31}")
FIELD = re.compile(r"[a-z][a-z0-9_]{0,31}")
READ_MAX = 1024 * 1024


def admit(line: bytes) -> tuple[str, dict[str, str]] | None:
    """(kind, data) of one line of the trainer, or None when it is no record."""
    if len(line) > LINE_MAX:
        return None
    try:
        tree = json.loads(line)
    except (ValueError, RecursionError):
        return None
    if not isinstance(tree, dict) or not isinstance(tree.get("data"), dict):
        return None
    kind = tree.get("kind")
    if not isinstance(kind, str) or not KIND.fullmatch(kind):
        return None
    return kind, _fields(tree["data"])


def _fields(data: dict[Any, Any]) -> dict[str, str]:
    kept: dict[str, str] = {}
    for name, value in data.items():
        if isinstance(value, int) and not isinstance(value, bool) and -2**63 < value < 2**63:
            value = str(value)
        if FIELD.fullmatch(name) and isinstance(value, str) and len(kept) < FIELDS_MAX:
            kept[name] = plain(value, VALUE_MAX)
    return kept


class Book:
    """The file itself, written by the keeper alone. `limit` lines of the trainer, as many of the GPU."""

    def __init__(self, place: Workspace, limit: int) -> None:
        self._fd = os.open(place.records, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        self._rest = bytearray()
        self._skipping = self._broken = False
        self._limit = limit
        self._seq = self._told = self._measured = 0
        self.last_kind = ""
        self.full = False

    def feed(self, data: bytes) -> list[tuple[str, dict[str, str]]]:
        """Takes what came from the trainer's standard output; returns the records that it made of it."""
        written = []
        self._rest += data
        while b"\n" in self._rest:
            line, _, rest = bytes(self._rest).partition(b"\n")
            self._rest = bytearray(rest)
            record = None if self._skipping else admit(line)
            self._skipping = False
            if record and self._take_one():
                self._write(*record)
                written.append(record)
        if len(self._rest) > LINE_MAX:
            self._rest.clear()
            self._skipping = True        # the rest of a line that is too long is no line of its own
        return written

    def _take_one(self) -> bool:
        self._told += 1
        self.full = self._broken or self._told > self._limit + SLACK
        return not self.full

    def gpu(self, data: dict[str, str]) -> None:
        if self._measured < self._limit:
            self._measured += 1
            self._write("gpu", _fields(data))

    def error(self, kind: str) -> None:
        """A word of the keeper's own; never invented for a job that says itself how it ended."""
        self._write("error", {"type": kind, "where": "", "phase": ""})

    def _write(self, kind: str, data: dict[str, str]) -> None:
        if self._broken:
            return
        self._seq += 1
        self.last_kind = kind
        line = self._line(kind, data)
        while len(line) > LINE_MAX:      # quotes and backslashes double when written
            data.popitem()
            line = self._line(kind, data)
        try:
            while line:
                line = line[os.write(self._fd, line):]
        except OSError:
            self._broken = self.full = True   # a full disk; nothing may follow half a line

    def _line(self, kind: str, data: dict[str, str]) -> bytes:
        return canonical({"seq": self._seq, "at": int(time.time()), "kind": kind, "data": data}) + b"\n"

    def close(self) -> None:
        os.fsync(self._fd)
        os.close(self._fd)


def read_lines(place: Workspace, offset: int) -> tuple[bytes, int]:
    """(whole lines from `offset`, size of the file). Empty when there is nothing new or no file yet."""
    try:
        with open_plain(place.records) as file:
            size = os.fstat(file.fileno()).st_size
            file.seek(offset)
            block = file.read(READ_MAX)
    except OSError:
        return b"", 0
    return block[:block.rfind(b"\n") + 1], size
