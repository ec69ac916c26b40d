"""The record file's own rules, for whatever a trainer may print."""
from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.domain.document import parse
from remote_payload.records import LINE_MAX, SLACK, Book, admit, read_lines
from remote_payload.workspace import Workspace

pytestmark = pytest.mark.noleak


@pytest.fixture
def place(tmp_path: Path) -> Workspace:
    place = Workspace(tmp_path, "ab" * 32)
    place.job.mkdir(parents=True)
    return place


def lines_of(place: Workspace) -> list[Any]:
    return [parse(line) for line in place.records.read_bytes().splitlines()]


@settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.binary(max_size=300) | st.sampled_from([
    b'{"kind":"step","data":{"a":"b"}}\n', b"\n", b'{"kind":"x","data":{}}\n', b"{" * 3000, b"y" * 5000, b"\xff\n"])))
def test_anything_printed_leaves_a_sound_file(place: Workspace, chunks: list[bytes]) -> None:
    place.records.unlink(missing_ok=True)
    book = Book(place, 1000)
    for chunk in chunks:
        book.feed(chunk)
    book.close()
    records = lines_of(place)
    assert [record["seq"] for record in records] == list(range(1, len(records) + 1))
    assert all(set(record) == {"seq", "at", "kind", "data"} for record in records)


@settings(max_examples=200, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.floats() | st.integers() | st.text(max_size=5),
                    lambda t: st.lists(t, max_size=3) | st.dictionaries(st.text(max_size=6), t, max_size=3)))
def test_any_json_is_a_record_or_nothing(tree: Any) -> None:
    for line in (json.dumps(tree), json.dumps({"kind": "step", "data": tree})):
        record = admit(line.encode())
        assert record is None or all(isinstance(v, str) and v.isascii() for v in record[1].values())


def test_a_line_in_pieces_is_one_line_and_a_long_one_none(place: Workspace) -> None:
    book = Book(place, 1000)
    for piece in (b'{"kind":"st', b'ep","data"', b":{}}\n", b"x" * 9000, b'{"kind":"no","data":{}}\n',
                  b'{"kind":"yes","data":{}}\n'):
        book.feed(piece)
    book.close()
    assert [record["kind"] for record in lines_of(place)] == ["step", "yes"]


def test_the_cap_counts_the_trainer_and_the_gpu_apart(place: Workspace) -> None:
    book = Book(place, 10)
    for _ in range(200):
        book.feed(b'{"kind":"step","data":{}}\n')
        book.gpu({"mem_mib": "1"})
    book.close()
    kinds = [record["kind"] for record in lines_of(place)]
    assert book.full and kinds.count("gpu") == 10 and kinds.count("step") == 10 + SLACK


def test_no_line_passes_the_limit(place: Workspace) -> None:
    book = Book(place, 10)
    book.gpu({f"k{n}": '"' * 200 for n in range(24)})
    book.close()
    assert len(place.records.read_bytes()) <= LINE_MAX and lines_of(place)[0]["data"]


def test_a_full_disk_ends_the_book_and_not_the_keeper(place: Workspace) -> None:
    place.records.symlink_to("/dev/full")
    with pytest.raises(OSError):
        Book(place, 10)                  # never through a link
    place.records.unlink()
    book = Book(place, 10)
    os.dup2(os.open("/dev/full", os.O_WRONLY), book._fd)
    book.error("Something")
    assert book.full
    book.feed(b'{"kind":"step","data":{}}\n')


def test_only_whole_lines_are_handed_out(place: Workspace) -> None:
    assert read_lines(place, 0) == (b"", 0)
    place.records.write_bytes(b'{"a":1}\n{"b":2}\n{"half"')
    assert read_lines(place, 0) == (b'{"a":1}\n{"b":2}\n', 23)
    assert read_lines(place, 8) == (b'{"b":2}\n', 23) and read_lines(place, 16) == (b"", 23)
    assert read_lines(place, 1000) == (b"", 23)
