"""Our copy of the records: nothing lost, nothing twice, nothing in it that was not checked."""
from __future__ import annotations

import json
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.domain.names import Digest
from orchestrator.domain.progress import BadRecords, Published, RecordKind, read_record
from orchestrator.node.recordfile import FILE, RecordFile, published

HASH = "sha256:" + "ab" * 32


def line(seq: int, kind: str = "step", **data: str) -> bytes:
    return json.dumps({"seq": seq, "at": 1_796_000_000, "kind": kind, "data": data}).encode() + b"\n"


def test_goes_on_where_it_stands(tmp_path: Path) -> None:
    first = RecordFile(tmp_path, 100)
    assert [r.seq for r in first.add(line(1) + line(2))] == [1, 2]
    first.close()
    again = RecordFile(tmp_path, 100)
    assert again.offset == len(line(1) + line(2)) and [r.seq for r in again.known()] == [1, 2]
    assert [r.seq for r in again.add(line(3))] == [3]
    again.close()
    assert (tmp_path / FILE).read_bytes() == line(1) + line(2) + line(3)


def test_torn_line_is_cut_off(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(line(1) + line(2)[:20])
    file = RecordFile(tmp_path, 100)
    assert file.offset == len(line(1))
    assert [r.seq for r in file.add(line(2))] == [2]
    file.close()


def test_a_line_ends_with_a_line_feed_and_nothing_else(tmp_path: Path) -> None:
    """A carriage return between two records is a bad line, one inside is JSON's own blank and splits nothing."""
    file = RecordFile(tmp_path, 10)
    with pytest.raises(BadRecords):
        list(file.add(line(1).rstrip(b"\n") + b"\r" + line(2)))
    spaced = line(1).replace(b", ", b",\r")
    assert [r.seq for r in file.add(spaced)] == [1]
    file.close()
    again = RecordFile(tmp_path, 10)
    assert again.offset == len(spaced) and [r.seq for r in again.known()] == [1]
    again.close()


@pytest.mark.parametrize("bad", [
    line(3), line(1), line(2)[:-1], b"\n", b"[]\n", b"null\n", line(2)[:-2] + b"\n",
    line(2, x="y" * 5000), b'{"seq":2,"at":1,"kind":"step","data":{"a":1}}\n',
    b'{"seq":2,"at":1.5,"kind":"step","data":{}}\n', b'{"seq":true,"at":1,"kind":"step","data":{}}\n',
    b'{"seq":2,"at":1,"kind":7,"data":{}}\n', b'{"seq":2,"seq":2,"at":1,"kind":"step","data":{}}\n'])
def test_broken_lines_are_not_kept(tmp_path: Path, bad: bytes) -> None:
    file = RecordFile(tmp_path, 100)
    list(file.add(line(1)))
    with pytest.raises(BadRecords):
        list(file.add(bad))
    file.close()
    assert (tmp_path / FILE).read_bytes() == line(1)


def test_more_records_than_agreed(tmp_path: Path) -> None:
    file = RecordFile(tmp_path, 2)
    with pytest.raises(BadRecords):
        list(file.add(line(1) + line(2) + line(3)))
    file.close()


def test_more_bytes_than_so_many_records_need(tmp_path: Path) -> None:
    file, long = RecordFile(tmp_path, 1000), {f"k{n}": "y" * 180 for n in range(20)}
    with pytest.raises(BadRecords, match="bytes of records"):
        for seq in range(1, 1000):
            list(file.add(line(seq, **long)))
    assert (tmp_path / FILE).stat().st_size <= 1000 * 512 + 256 * 1024
    file.close()


def test_a_large_copy_is_read_back_in_little_memory(tmp_path: Path) -> None:
    block = b"".join(line(seq, loss="5" * 3000) for seq in range(1, 5_001))
    (tmp_path / FILE).write_bytes(block + b'{"half')
    tracemalloc.start()
    try:
        file = RecordFile(tmp_path, 100_000)
        assert file.offset == len(block) and file.seq == 5_000
        assert sum(1 for _ in file.known()) == 5_000
        assert tracemalloc.get_traced_memory()[1] < 8 << 20 < len(block)
    finally:
        tracemalloc.stop()
    file.close()


def test_planted_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "other").write_text("")
    (tmp_path / FILE).symlink_to(tmp_path / "other")
    with pytest.raises(OSError, match="symbolic"):
        RecordFile(tmp_path, 2)


def test_error_and_unknown_kind(tmp_path: Path) -> None:
    file = RecordFile(tmp_path, 10)
    made = list(file.add(line(1, "surprise", a="b") + line(2, "error", type="MemoryError", where="train.py:7")))
    assert made[0].kind is RecordKind.OTHER and file.error == "MemoryError train.py:7"
    file.close()


@given(st.text(st.characters(exclude_categories=["Cs"]), max_size=60))
def test_text_of_a_record_is_harmless(text: str) -> None:
    record = read_record(line(1, "error", type=text).rstrip(b"\n"))
    assert not [c for c in record.get("type") if ord(c) < 32 or 0x7f <= ord(c) < 0xa0 or c == "\u202e"]


@pytest.mark.parametrize(("name", "size", "sha256"), [
    ("../../x.age", "5", HASH), ("/adapter.age", "5", HASH), ("adapter.age\x00", "5", HASH), ("Adapter.age", "5", HASH),
    ("payload.zip", "5", HASH), ("dataset.age", "5", HASH), ("checkpoint-.age", "5", HASH), ("adapter.age", "0", HASH),
    ("adapter.age", "1152921504606846976", HASH), ("adapter.age", "-5", HASH), ("adapter.age", "1e3", HASH),
    ("adapter.age", "5", "sha256:xyz"), ("adapter.age", "5", ""), ("checkpoint-1.age/../x", "5", HASH)])
def test_announcements_that_break_the_rules(name: str, size: str, sha256: str) -> None:
    record = read_record(line(1, "published", name=name, bytes=size, sha256=sha256).rstrip(b"\n"))
    assert published(record, 1 << 30) is None


def test_announcement() -> None:
    record = read_record(line(1, "published", name="checkpoint-12.age", bytes="5", sha256=HASH).rstrip(b"\n"))
    assert published(record, 10) == Published("checkpoint-12.age", 5, Digest(HASH))
    assert published(record, 4) is None
