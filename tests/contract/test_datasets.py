"""The Datasets port on real files."""
from __future__ import annotations

import json
import os
import re
from pathlib import Path
from typing import Any

import pytest

from orchestrator import ports
from orchestrator.dataset import Datasets
from orchestrator.domain.document import encode
from orchestrator.domain.training import DataFile, DatasetFacts
from orchestrator.errors import BadInput

CANARY = "5a" * 16
SECRET = "Ottilie Winterhalter"


def chats(count: int, first: int = 0) -> list[dict[str, Any]]:
    return [{"messages": [{"role": "user", "content": f"{SECRET} {n}"}, {"role": "assistant", "content": f"M{n}"}]}
            for n in range(first, first + count)]


def written(folder: Path, rows: list[Any], name: str = "contracts.jsonl") -> Path:
    path = folder / name
    path.write_text("".join(json.dumps(r) + "\n" for r in rows))
    return path


@pytest.fixture
def datasets(tmp_path: Path) -> Datasets:
    port: ports.Datasets = Datasets(tmp_path / "run")
    assert isinstance(port, Datasets)
    return port


def check(datasets: Datasets, path: Path, format: str = "auto") -> DatasetFacts:
    return datasets.check(DataFile(str(path), format))


def refused(datasets: Datasets, path: Path, format: str = "auto") -> BadInput:
    with pytest.raises(BadInput) as caught:
        check(datasets, path, format)
    assert SECRET not in str(caught.value) + str(caught.value.hint) and "\n" not in str(caught.value)
    return caught.value


def test_facts(datasets: Datasets, tmp_path: Path) -> None:
    facts = check(datasets, written(tmp_path, chats(500)))
    assert (facts.format, facts.kind, facts.rows, facts.train, facts.held_out) == ("messages", "messages", 500, 450, 50)
    assert facts.warnings == () and re.fullmatch("sha256:[0-9a-f]{64}", facts.digest)
    assert str(tmp_path) not in str(encode(facts)[0])


@pytest.mark.parametrize("sample", sorted((Path(__file__).parents[1] / "golden" / "datasets").glob("*.jsonl")),
                         ids=lambda p: p.stem)
def test_the_format_is_recognised(datasets: Datasets, sample: Path) -> None:
    facts = check(datasets, sample)
    assert facts.format == sample.stem and facts.rows == 3
    assert check(datasets, sample, facts.format).digest == facts.digest


def test_what_deserves_a_word(datasets: Datasets, tmp_path: Path) -> None:
    facts = check(datasets, written(tmp_path, [*chats(20), *chats(5), {**chats(1, 90)[0], "patient": SECRET}]))
    assert facts.warnings == ("only 26 rows; a few hundred checked examples are enough, fewer often are not",
                              "1 of 26 rows have further keys, which are not used", "5 of 26 rows are copies of others")


def test_the_first_faulty_lines_are_named(datasets: Datasets, tmp_path: Path) -> None:
    rows = [*chats(3), {"messages": []}, "x", {"text": SECRET}]
    assert str(refused(datasets, written(tmp_path, rows))) == (
        "contracts.jsonl:4:14: the conversation is empty; contracts.jsonl:5:1: not a JSON object; contracts.jsonl:6:1: no "
        "'messages', this looks like text and not like messages")


def test_ten_faulty_lines_are_enough(datasets: Datasets, tmp_path: Path) -> None:
    told = str(refused(datasets, written(tmp_path, [*chats(3), *[{"messages": []}] * 30])))
    assert told.count("contracts.jsonl:") == 10 and told.endswith("; and 20 more")


@pytest.mark.parametrize(("content", "told"), [
    (b"", "there are no rows"),
    (b"\n\n", "there are no rows"),
    (b'{"a": 1}\n', "the format of the rows is not known"),
    (b'{"text": "a"}\n', "rows: 1; at least 2 are needed"),
    (b'{"text": "a"}\n{"text": "a"}\n', "all 2 rows are the same"),
    (b'\xef\xbb\xbf{"text": "a"}\n', "contracts.jsonl:1:1: starts with a byte order mark"),
    (b'{"text": "a"}\n{"messages": []}\n', "the first rows are of several formats (text, messages)"),
    (b'[{"text": "a"},\n', "contracts.jsonl:1:1: the array is not closed"),
    (b"\x1f\x8b\x08", "contracts.jsonl: this packed file ends too early"),
])
def test_files_that_are_no_dataset(datasets: Datasets, tmp_path: Path, content: bytes, told: str) -> None:
    path = tmp_path / "contracts.jsonl"
    path.write_bytes(content)
    assert told in str(refused(datasets, path))


def test_no_file(datasets: Datasets, tmp_path: Path) -> None:
    assert "no such file" in str(refused(datasets, tmp_path / "none.jsonl"))
    folder = refused(datasets, tmp_path)
    assert "this is a folder" in str(folder) and "name the file itself" in (folder.hint or "")
    os.mkfifo(tmp_path / "pipe")
    assert "this is no ordinary file" in str(refused(datasets, tmp_path / "pipe"))


def test_a_line_over_the_limit_is_passed_in_pieces(datasets: Datasets, tmp_path: Path) -> None:
    path = written(tmp_path, [{"text": "a"}, {"text": "x" * 13_000_000}, {"text": 1}])
    assert str(refused(datasets, path)) == ("contracts.jsonl:2:1: longer than 4 MiB; contracts.jsonl:3:10: 'text' is a "
                                            "number, text is needed")


def test_rows_as_the_trainer_reads_them(datasets: Datasets, tmp_path: Path) -> None:
    facts = check(datasets, written(tmp_path, [*chats(30), *chats(5)]))
    path = datasets.rows(facts, CANARY)
    assert path.parent == tmp_path / "run" and path.stat().st_mode & 0o777 == 0o600
    header, *rows = [json.loads(line) for line in path.read_text().splitlines()]
    assert header == {"schema": "sealtune/rows/1", "kind": "messages", "canary": CANARY, "train": facts.train,
                      "held_out": facts.held_out}
    assert [{"messages": r["messages"]} for r in rows] == [*chats(30), *chats(5)]
    sides = [[str(r["messages"]) for r in rows if r["split"] == side] for side in ("train", "held_out")]
    assert list(map(len, sides)) == [facts.train, facts.held_out] and not set(sides[0]) & set(sides[1])


def test_text_rows(datasets: Datasets, tmp_path: Path) -> None:
    facts = check(datasets, written(tmp_path, [{"text": "ä\u2028b"}, {"text": "c"}]))
    lines = datasets.rows(facts, CANARY).read_bytes().split(b"\n")
    assert facts.kind == "text" and {json.loads(line)["text"] for line in lines[1:3]} == {"ä\u2028b", "c"}
    assert lines[3:] == [b""]


def test_a_file_that_changed_is_refused(datasets: Datasets, tmp_path: Path) -> None:
    path = written(tmp_path, chats(30))
    facts = check(datasets, path)
    written(tmp_path, chats(30, first=1))
    for port in (datasets, Datasets(tmp_path / "run")):      # the one that checked it, and one after a restart
        with pytest.raises(BadInput, match="not the file that was checked"):
            port.rows(facts, CANARY)
    assert not list((tmp_path / "run").iterdir())


def test_a_file_that_lost_its_rows_is_refused(datasets: Datasets, tmp_path: Path) -> None:
    path = written(tmp_path, chats(30))
    facts = check(datasets, path)
    path.write_text("no row\n")
    with pytest.raises(BadInput, match=r"contracts\.jsonl:1:1: not JSON"):
        datasets.rows(facts, CANARY)
    path.unlink()
    with pytest.raises(BadInput, match="no such file"):
        datasets.rows(facts, CANARY)
    assert not list((tmp_path / "run").iterdir())


def test_again_and_forgotten(datasets: Datasets, tmp_path: Path) -> None:
    facts = check(datasets, written(tmp_path, chats(30)))
    first = datasets.rows(facts, CANARY).read_bytes()
    assert datasets.rows(facts, CANARY).read_bytes() == first
    assert Datasets(tmp_path / "run").rows(facts, CANARY).read_bytes() == first
    datasets.forget()
    datasets.forget()
    assert not list((tmp_path / "run").iterdir())


def test_a_link_in_the_way_is_not_followed(datasets: Datasets, tmp_path: Path) -> None:
    facts = check(datasets, written(tmp_path, chats(30)))
    other = tmp_path / "other"
    other.write_text("mine")
    (tmp_path / "run").mkdir(exist_ok=True)
    (tmp_path / "run" / "rows.part").symlink_to(other)
    datasets.rows(facts, CANARY)
    assert other.read_text() == "mine"
