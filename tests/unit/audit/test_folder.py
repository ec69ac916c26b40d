"""A folder handed over by somebody else: read with bounds, never through a link, and no name in it is believed."""
from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.audit.case import MOST_LEASES, MOST_REPORT, folder_of
from orchestrator.audit.files import EvidenceTrouble
from orchestrator.audit.log import BadLog, of_bytes
from orchestrator.audit.report import MOST_DOCUMENT, wipe_document
from orchestrator.audit.verify import Verdict, audit
from orchestrator.domain.document import canonical, sha256
from orchestrator.domain.event import GENESIS, Kind
from orchestrator.domain.names import Instant
from orchestrator.errors import BadInput
from tests.fakes.audited import RELEASE, SIGNER, START, Story

pytestmark = pytest.mark.evidence
TRUSTED = frozenset({SIGNER})


class SetBack(Story):
    """A laptop whose clock was put right, an hour back, in the middle of its run."""

    def add(self, name: str, kind: Kind, value: object, acquires: tuple[str, ...] = (),
            releases: tuple[str, ...] = ()) -> None:
        super().add(name, kind, value, acquires, releases)
        if len(self.events) == 12:
            self.events[-1] = replace(self.events[-1], at=Instant(START - 3600))


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return Story(tmp_path).told().home


def linked(path: Path) -> None:
    away = path.with_name("elsewhere")
    path.rename(away)
    path.symlink_to(away)


@pytest.mark.parametrize("name", ["events.jsonl", "closing.json", "closing.json.sig", "lease-1", "lease-1/report.json",
                                  "lease-1/report.json.sig", "evidence"])
def test_no_link_is_followed(folder: Path, name: str) -> None:
    linked(folder / name)
    with pytest.raises(EvidenceTrouble, match="is a link"):
        audit(folder, TRUSTED, RELEASE)


@pytest.mark.parametrize("make", [lambda p: p.mkdir(), os.mkfifo], ids=["folder", "pipe"])
def test_only_plain_files_are_read(folder: Path, make: Callable[[Path], None]) -> None:
    (folder / "events.jsonl").unlink()
    make(folder / "events.jsonl")
    with pytest.raises(EvidenceTrouble, match="no plain file"):
        audit(folder, TRUSTED, RELEASE)


def test_what_is_too_much_is_not_read(folder: Path) -> None:
    with (folder / "closing.json").open("ab") as file:
        file.truncate(MOST_REPORT + 1)
    with pytest.raises(EvidenceTrouble, match="longer than"):
        audit(folder, TRUSTED, RELEASE)


def test_more_leases_than_a_run_can_have(folder: Path) -> None:
    for number in range(2, MOST_LEASES + 2):
        shutil.copytree(folder / "lease-1", folder / f"lease-{number}")
    with pytest.raises(EvidenceTrouble, match="at most 16"):
        audit(folder, TRUSTED, RELEASE)


@pytest.mark.parametrize("name", ["lease-\x1b[2J", "lease-0", "lease-01", "lease-١", "lease-1 ", "lease--1", "x"])
def test_folders_that_are_not_named_as_ours_are_no_leases(folder: Path, name: str) -> None:
    shutil.copytree(folder / "lease-1", folder / name)
    result = audit(folder, TRUSTED, RELEASE)
    assert result.verdict is Verdict.VERIFIED and all(c.text.isascii() and c.text.isprintable() for c in result.checks)


def test_a_report_in_the_folder_of_another_lease(folder: Path) -> None:
    """The report of a good lease does not stand in for a bad one's."""
    shutil.copytree(folder / "lease-1", folder / "lease-2")
    result = audit(folder, TRUSTED, RELEASE)
    assert [c.why for c in result.checks if c.word == "failed"] == ["it is of lease-1 and lies in the folder of lease-2"]


def test_what_a_person_may_name(folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (".", "lease-1", "lease-1/report.json", "lease-1/report.json.sig", "closing.json", "events.jsonl"):
        found = folder_of(folder / name)
        assert found and audit(found, TRUSTED, RELEASE).verdict is Verdict.VERIFIED
    monkeypatch.chdir(folder / "lease-1")
    for name in (".", "report.json", ".."):
        found = folder_of(Path(name))
        assert found and audit(found, TRUSTED, RELEASE).verdict is Verdict.VERIFIED
    alone = tmp_path / "lease-1"                             # a lease's folder without its run is what there is
    shutil.copytree(folder / "lease-1", alone)
    assert folder_of(alone / "report.json") == alone
    (tmp_path / "visits.jsonl").write_text("{}")
    assert folder_of(tmp_path / "none") is None and folder_of(tmp_path / "none" / "report.json") is None
    with pytest.raises(BadInput, match=r"visits\.jsonl is not called report\.json"):
        folder_of(tmp_path / "visits.jsonl")


ROW = {"v": 1, "seq": 0, "prev": GENESIS, "at": 5, "deed": "run/check", "kind": "done", "acquires": [], "releases": [],
       "public": {}, "private": sha256(b"")}


@pytest.mark.parametrize("change", [
    {"seq": False}, {"seq": "0"}, {"v": True}, {"at": True}, {"at": "5"}, {"at": -1}, {"at": 10 ** 300}, {"at": None},
    {"acquires": "lease"}, {"releases": [1]}, {"acquires": None}, {"deed": "run//check"}, {"deed": "run"}, {"deed": 1},
    {"kind": "Done"}, {"kind": ["done"]}, {"prev": None}, {"more": 1}, {"v": 0}])
def test_a_row_with_other_kinds_of_values_is_none(change: dict[str, object]) -> None:
    assert of_bytes(canonical(ROW) + b"\n").count == 1
    with pytest.raises(BadLog):
        of_bytes(canonical({**ROW, **change}) + b"\n")


@pytest.mark.parametrize("spelled", [
    b'{"acquires":[],"acquires":[],', b'{"acquires":[], ', b'{"acquires":[],"x":NaN,', b'{"acquires":[],"x":1.0,',
    b'{"acquires":[],"x":1e2,', b'{"acquires":[],"x":Infinity,', b'{"acquires":[],"x":"\\u0061",',
    b'\xef\xbb\xbf{"acquires":[],'])
def test_a_row_in_another_spelling_is_none(spelled: bytes) -> None:
    line = canonical(ROW).replace(b'{"acquires":[],', spelled)
    assert line != canonical(ROW)
    with pytest.raises(BadLog):
        of_bytes(line + b"\n")


@settings(max_examples=200, deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_a_log_or_a_bad_one(data: bytes) -> None:
    try:
        assert of_bytes(data).count == 0
    except BadLog as problem:
        assert str(problem).isascii()


def test_a_node_cannot_make_a_report_too_long_to_be_read() -> None:
    """Its wipe document is in the report only up to a bound below the auditor's; a longer one stays in the evidence."""
    document = canonical({"schema": "sealtune/wipe/1", "x": "y" * MOST_DOCUMENT})
    assert wipe_document(document) == (None, "too long to be taken in") and 2 * MOST_DOCUMENT < MOST_REPORT


def test_a_clock_that_was_set_back_is_said(tmp_path: Path) -> None:
    """Wall clocks go back; the order of the rows does not rest on them."""
    result = audit(SetBack(tmp_path).told().home, TRUSTED, RELEASE)
    (said,) = [c.why for c in result.checks if c.number == 3]
    assert result.verdict is Verdict.VERIFIED and said.endswith("rows, 1 of them dated before the one ahead")
