"""One dataset in every kind of file; the fast reading and the slow one; the numbers of each row, in memory or on disk."""
from __future__ import annotations

import gzip
import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.dataset import arrays, lines
from orchestrator.dataset.faults import Fault
from orchestrator.dataset.files import Bytes
from orchestrator.dataset.formats import spell
from orchestrator.dataset.hashes import Hashes
from orchestrator.dataset.locate import column
from orchestrator.dataset.source import Source
from orchestrator.domain.document import canonical
from orchestrator.errors import BadInput
from tests.fakes import sound

pytestmark = pytest.mark.data
ROWS = [{"prompt": f"Frage {n}\nüber 😀, \"{n}\"", "completion": f"Antwort {n}; ja"} for n in range(40)]
PACKED: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".zst": zstandard.compress,
    "-twice.gz": lambda b: gzip.compress(b[:500]) + gzip.compress(b[500:]),
    "-twice.zst": lambda b: zstandard.compress(b[:500]) + zstandard.compress(b[500:])}
WRITTEN: dict[str, Callable[[list[dict[str, str]]], bytes]] = {
    "rows.jsonl": sound.jsonl, "rows.json": lambda r: json.dumps(r, indent=3).encode(),
    "dense.json": lambda r: json.dumps(r, separators=(",", ":")).encode(), "rows.csv": sound.table,
    "rows.tsv": lambda r: sound.table(r, "\t"), "rows.parquet": sound.parquet}
ODD = st.sampled_from(['":', '" :', "\\", '"'])
TREE = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=6) | ODD,
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3))


@pytest.mark.parametrize("packed", PACKED)
@pytest.mark.parametrize("name", WRITTEN)
def test_every_kind_of_file_has_the_same_rows(tmp_path: Path, name: str, packed: str) -> None:
    if packed and name.endswith("parquet"):
        packed = ""
    content = PACKED[packed](WRITTEN[name](ROWS))
    path = tmp_path / f"{packed.split('.')[0]}{name}.{packed.rpartition('.')[2]}".rstrip(".")
    path.write_bytes(content)
    source = Source(path)
    assert [row for _, row, _ in source.rows()] == ROWS
    assert source.digest == "sha256:" + hashlib.sha256(content).hexdigest()
    third = [(line, row) for line, row, _ in source.rows()][2]
    if name != "dense.json":
        assert [(line, row) for line, row, _ in source.rows(frozenset({third[0]}))] == [third]


def test_zstd_that_ends_early_is_told(tmp_path: Path) -> None:
    """The library's own reader gives fewer rows and says nothing."""
    path, packed = tmp_path / "rows.jsonl.zst", zstandard.compress(sound.jsonl(ROWS * 200))
    for cut in range(5, len(packed), max(1, len(packed) // 7)):
        path.write_bytes(packed[:cut])
        with pytest.raises(BadInput, match="ends too early"):
            list(Bytes(path).blocks())


@given(TREE.map(lambda tree: {"a": tree}), st.sampled_from([(",", ":"), (", ", ": "), (" , ", " : "), (",\t", "\t:  ")]))
def test_fast_and_slow_read_the_same(tree: dict[str, Any], marks: tuple[str, str]) -> None:
    line = json.dumps(tree, separators=marks).encode()
    (_, fast, _), = lines.read([line])
    assert not isinstance(fast, Fault)
    assert fast.keys() == lines.parse(1, line).keys()


@given(st.lists(st.tuples(st.sampled_from("abc"), st.sampled_from(['"x"', '"\\":"', '"\\u0022:"', '{"d":1}']),
                          st.sampled_from([":", " :", "\t:", "  :"])), min_size=1, max_size=4))
def test_a_key_that_is_there_twice_is_always_found(members: list[tuple[str, str, str]]) -> None:
    line = ("{" + ",".join(f'"{key}"{colon}{value}' for key, value, colon in members) + "}").encode()
    (_, row, _), = lines.read([line])
    assert isinstance(row, Fault) == (len({key for key, _, _ in members}) < len(members))


@given(st.lists(st.binary(max_size=40), max_size=6), st.integers(1, 9))
def test_blocks_of_any_size_are_the_same_lines(content: list[bytes], size: int) -> None:
    whole = b"\n".join(content)
    blocks = [whole[at:at + size] for at in range(0, len(whole), size)]
    wanted = whole.removesuffix(b"\n").split(b"\n")
    assert b"\n".join(lines.whole_lines(blocks)).split(b"\n") == wanted


@given(st.lists(TREE.map(lambda tree: {"a": tree}), max_size=5), st.sampled_from([None, 1]), st.integers(1, 9))
def test_an_array_in_blocks_of_any_size(rows: list[Any], indent: int | None, size: int) -> None:
    text = json.dumps(rows, indent=indent, ensure_ascii=False).encode()
    found = list(arrays.read(text[at:at + size] for at in range(0, len(text), size)))
    assert [json.loads(raw) for _, _, raw in found] == rows
    if indent:
        firsts = [n for n, line in enumerate(text.split(b"\n"), 1) if line.startswith(b" {")]
        assert [line for line, _, _ in found] == firsts


@given(st.binary(max_size=60))
def test_any_bytes_are_an_array_or_faults(content: bytes) -> None:
    for _, row, _ in arrays.read(io.BytesIO(b"[" + content)):
        assert isinstance(row, dict | Fault)


@given(st.dictionaries(st.text(max_size=4), st.text(max_size=20), max_size=4))
def test_rows_are_spelled_as_documents_are(row: dict[str, str]) -> None:
    """What is hashed does not change with the library that writes it."""
    try:
        assert spell(row) == canonical(row)
    except Fault:
        with pytest.raises(UnicodeEncodeError):
            canonical(row)


@pytest.mark.parametrize(("path", "found"), [
    (("messages", 1, "content"), "<there>"), (("messages", 0), "{"), (("messages", 5), "["), (("x",), "{"), ((), "{")])
def test_a_value_has_a_column(path: tuple[str | int, ...], found: str) -> None:
    text = '  {"a": {"messages": [1, "}"]}, "messages" : [ {"role": "user"}, {"content" : "<there>"}]}'
    place = column(text, path) - 1
    assert text[place:].strip('"').startswith(found)


@pytest.mark.parametrize("in_memory", [3, 1000])
def test_equals_are_found_in_memory_and_on_disk(in_memory: int) -> None:
    hashes = Hashes(in_memory)
    rows = [(5, 1), (9, 2), (5, 1), (7, 1), (2**63, 4), (5, 1), (2**63 + 1, 4), (8, 0), (6, 0)]
    for line, (stamp, asked) in enumerate(rows, 1):
        hashes.add(stamp, asked, line, 0)
    assert hashes.on_disk == (in_memory == 3) and len(hashes) == 9
    assert hashes.duplicates(10).first == ((3, 1), (6, 1)) and hashes.duplicates(10).count == 2
    assert hashes.contradictions(10).first == ((4, 1), (7, 5)) and hashes.contradictions(1).count == 2
    assert hashes.column("lines").tolist() == list(range(1, 10))
