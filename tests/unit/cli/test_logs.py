"""`sealtune logs` shows a hostile node's records, and a terminal obeys none of it."""
from __future__ import annotations

import json
from pathlib import Path

from orchestrator.cli.logs import as_json, records, shown
from orchestrator.node.recordfile import FILE, RecordFile

HOSTILE = "\x1b]52;c;ZXZpbA==\x07\x1b[2J\u202e\u2028\u2029\x85\x9b31m\x00"


def line(seq: int, kind: str, data: dict[str, str], escaped: bool = True, at: int = 1) -> bytes:
    return json.dumps({"seq": seq, "at": at, "kind": kind, "data": data}, ensure_ascii=escaped).encode() + b"\n"


def kept(home: Path) -> None:
    """Two leases, whose records passed every check that comes before the file."""
    folder = home / "lease-2"
    file = RecordFile(folder, 10)
    list(file.add(line(1, HOSTILE, {"type": HOSTILE, HOSTILE: "x"}) + line(2, "error", {"type": "Fault"}, at=(1 << 53) - 1)))
    list(file.add(line(3, "step", {"loss": "a\u2028b\u2029c"}, escaped=False)))
    file.close()
    file = RecordFile(home / "lease-10", 10)
    list(file.add(line(1, "step", {"step": "7"})))
    file.close()


def test_nothing_but_text_is_printed(tmp_path: Path) -> None:
    kept(tmp_path)
    seen = list(records(tmp_path, lambda: False))
    assert [(r.seq, r.kind.value) for r in seen] == [(1, "other"), (2, "error"), (3, "step"), (1, "step")]
    for record in seen:
        for text in (shown(record), as_json(record)):
            assert text.isascii() and text.isprintable()
    assert json.loads(as_json(seen[-1])) == {"seq": 1, "at": 1, "kind": "step", "data": {"step": "7"}}
    assert shown(seen[-1]).endswith("step       7")


def test_what_is_no_record_is_passed_over(tmp_path: Path) -> None:
    kept(tmp_path)
    with (tmp_path / "lease-2" / FILE).open("ab") as file:
        file.write(b"\x1b[2J\n[]\n" + line(4, "step", {})[:-5])
    assert [r.seq for r in records(tmp_path, lambda: False)] == [1, 2, 3, 1]


def test_following_reads_on_where_it_stood(tmp_path: Path) -> None:
    kept(tmp_path)
    turns = iter([True, True, False])

    def more() -> bool:
        with (tmp_path / "lease-10" / FILE).open("ab") as file:
            file.write(b'{"at":1,"data":{},"kind":"gpu","seq":2}\n{"ha')
        return next(turns)
    assert len(list(records(tmp_path, more))) == 5          # the half lines that follow make no record
