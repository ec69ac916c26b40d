"""Reports outlive releases: what another one made is never contradicted for that, and nothing else is let through."""
from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.audit.answers import contradiction
from orchestrator.audit.case import Release
from orchestrator.audit.report import anchor
from orchestrator.audit.sshsig import sign
from orchestrator.audit.verify import AuditResult, Verdict, audit
from orchestrator.audit.words import ALWAYS, CAVEATS, CONDITIONS
from orchestrator.domain.document import canonical, sha256
from orchestrator.domain.event import VERSION, Kind, head
from orchestrator.domain.evidence import ReportOrder, SealedReport
from orchestrator.domain.names import Digest
from orchestrator.domain.spool import Installed
from tests.fakes.audited import RELEASE, SECRET, SIGNER, Story, key_of

pytestmark = pytest.mark.evidence
Tree = dict[str, Any]
LATER = replace(RELEASE, version="0.2.0", payload=sha256(b"the next payload"))
REBUILT = replace(RELEASE, payload=sha256(b"the next payload"))      # the same number, another archive


@dataclass
class ByAnother(Story):
    """A run whose documents another release laid out in its own way, and signed: `report` and `closing` change them."""

    report: Callable[[Tree], object] = lambda tree: None
    closing: Callable[[Tree], object] = lambda tree: None

    def seal(self, scope: str) -> None:
        order = ReportOrder(scope, key_of(scope), len(self.events), head(self.events), "5a" * 16)
        self.add(f"{scope}/report", Kind.INTENDED, order)
        self.notary.seal(order, self.events)
        digest = self.written(self.home / scope / "report.json", self.report)
        self.add(f"{scope}/report", Kind.DONE, SealedReport(digest, Digest(anchor(order.salt, digest)), SIGNER.fingerprint))

    def told(self) -> ByAnother:
        super().told()
        self.written(self.home / "closing.json", self.closing)
        return self

    @staticmethod
    def written(path: Path, change: Callable[[Tree], object]) -> Digest:
        tree = json.loads(path.read_bytes())
        change(tree)
        path.write_bytes(canonical(tree))
        path.with_name(path.name + ".sig").write_bytes(sign(SECRET, canonical(tree)))
        return sha256(canonical(tree))


class Elsewhere(Story):
    """The node says that it installed another payload than the one that it was sent."""

    def add(self, name: str, kind: Kind, value: object, acquires: tuple[str, ...] = (),
            releases: tuple[str, ...] = ()) -> None:
        if isinstance(value, Installed):
            value = replace(value, payload=sha256(b"the node's own"))
        super().add(name, kind, value, acquires, releases)


def judge(story: Story, release: Release | None) -> AuditResult:
    return audit(story.home, frozenset({SIGNER}), release)


def doubtful(result: AuditResult) -> dict[int, tuple[str, str]]:
    return {c.number: (c.word, c.why) for c in result.checks if c.word not in ("passed", "not applicable")}


class TestWhatWasSent:
    @pytest.mark.parametrize(("release", "told"), [
        (LATER, "made by another release (sealtune 0.1.0, this is 0.2.0)"),
        (REBUILT, f"made by another release (payload {RELEASE.payload}, this one sends {REBUILT.payload})"),
        (replace(RELEASE, locks=()), f"made by another release (lock {RELEASE.locks[0]}"),
        (None, "no installation to compare with")])
    def test_another_release_is_no_contradiction(self, tmp_path: Path, release: Release | None, told: str) -> None:
        """All else of the report is checked as ever; only 17 is not made."""
        result = judge(Story(tmp_path).told(), release)
        assert result.verdict is Verdict.INCOMPLETE and doubtful(result).keys() == {17}
        assert doubtful(result)[17][0] == "not checked" and doubtful(result)[17][1].startswith(told)

    @pytest.mark.parametrize("release", [RELEASE, LATER, REBUILT, None])
    def test_a_node_that_installed_something_else_is_one(self, tmp_path: Path, release: Release | None) -> None:
        found = doubtful(judge(Elsewhere(tmp_path).told(), release))
        assert found[17] == ("failed", "the node installed something else than was sent")


LAYOUTS: dict[str, Any] = {
    "a caveat more": {"report": lambda t: t["predicate"]["caveats"].append({"id": "new", "text": "said since 0.2"})},
    "a caveat worded anew": {"report": lambda t: t["predicate"]["caveats"][0].update(text="in better words")},
    "a field more": {"report": lambda t: t["predicate"]["node"].update(region="north")},
    "a field less": {"report": lambda t: t["predicate"].pop("technique")},
    "a closing field more": {"closing": lambda t: t.update(seen_by="two")},
    "a closing field less": {"closing": lambda t: t["leases"][0].pop("wiped")},
    "fields under other names": {"report": lambda t: t["predicate"].update(rows=t["predicate"].pop("events"))},
}
LIES: dict[str, Any] = {
    "another deposit": {"report": lambda t: t["predicate"]["money"].update(deposit="1")},
    "another result": {"report": lambda t: t["predicate"].update(result="partial")},
    "an integer that is none": {"report": lambda t: t["predicate"]["events"].update(count=True)},
    "another refund": {"closing": lambda t: t["leases"][0]["settlement"].update(refunded="337501")},
    "a lease less": {"closing": lambda t: t["leases"].pop()},
}


@pytest.mark.parametrize("change", LAYOUTS.values(), ids=LAYOUTS)
@pytest.mark.parametrize("release", [LATER, REBUILT], ids=["later", "rebuilt"])
def test_another_layout_is_incomplete_at_worst(tmp_path: Path, release: Release, change: Any) -> None:
    result = judge(ByAnother(tmp_path, **change).told(), release)
    assert result.verdict is Verdict.INCOMPLETE, doubtful(result)
    assert any(n in doubtful(result) and "made by another release" in doubtful(result)[n][1] for n in (5, 10, 11))


@pytest.mark.parametrize("change", LAYOUTS.values(), ids=LAYOUTS)
def test_of_this_release_it_is_a_contradiction(tmp_path: Path, change: Any) -> None:
    """Whoever says that this release made it is held to what this release makes."""
    assert judge(ByAnother(tmp_path, **change).told(), RELEASE).verdict is Verdict.CONTRADICTED


@pytest.mark.parametrize("change", LIES.values(), ids=LIES)
@pytest.mark.parametrize("release", [RELEASE, LATER, REBUILT, None], ids=["this", "later", "rebuilt", "none"])
def test_facts_that_differ_contradict_whoever_made_it(tmp_path: Path, release: Release | None, change: Any) -> None:
    result = judge(ByAnother(tmp_path, **change).told(), release)
    assert result.verdict is Verdict.CONTRADICTED, doubtful(result)


def test_a_difference_is_told_with_its_place(tmp_path: Path) -> None:
    found = doubtful(judge(ByAnother(tmp_path, **LIES["another deposit"]).told(), RELEASE))
    assert found[11] == ("failed", "log and evidence say otherwise at predicate.money.deposit")


@pytest.mark.parametrize(("change", "numbers"), [
    ({"report": lambda t: t.update(predicateType="urn:sealtune:report:2")}, {9, 11, 17}),
    ({"closing": lambda t: t.update(schema="sealtune/closing/2")}, {2, 5, 17})])
def test_a_later_layout_is_not_checked(tmp_path: Path, change: Any, numbers: set[int]) -> None:
    found = doubtful(judge(ByAnother(tmp_path, **change).told(), LATER))
    assert {n: word for n, (word, _) in found.items()} == dict.fromkeys(numbers, "not checked")


@pytest.mark.parametrize(("change", "number"), [
    ({"report": lambda t: t.update(predicateType="urn:sealtune:report:02")}, 9),
    ({"report": lambda t: t.update(predicateType=["urn:sealtune:report:2"])}, 9),
    ({"report": lambda t: t.update(_type="https://in-toto.io/Statement/v2")}, 9),
    ({"closing": lambda t: t.update(schema="sealtune/closing/")}, 2)])
def test_a_kind_that_was_never_ours_has_failed(tmp_path: Path, change: Any, number: int) -> None:
    assert doubtful(judge(ByAnother(tmp_path, **change).told(), LATER))[number][0] == "failed"


class TestLaterLog:
    """Rows of a later version cannot be understood here; that they follow from one another can be seen all the same."""

    @pytest.fixture
    def story(self, tmp_path: Path) -> Story:
        """The last row is of a later version; the closing record is over it."""
        story = Story(tmp_path).told()
        lines = (story.home / "events.jsonl").read_bytes().splitlines()
        lines[-1] = canonical({**json.loads(lines[-1]), "v": VERSION + 1, "more": 1})
        (story.home / "events.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        ByAnother.written(story.home / "closing.json", lambda t: t["events"].update(head=sha256(lines[-1])))
        return story

    def test_it_is_not_checked(self, story: Story) -> None:
        result = judge(story, LATER)
        assert result.verdict is Verdict.INCOMPLETE
        assert "of version 2, here 1 is known" in doubtful(result)[3][1] and 4 not in doubtful(result)
        assert doubtful(result)[12] == ("not checked", "the log was written by another release")

    @pytest.mark.parametrize("row", [0, 5, -1])
    def test_a_version_written_over_a_row_is_seen(self, tmp_path: Path, row: int) -> None:
        story = Story(tmp_path).told()
        lines = (story.home / "events.jsonl").read_bytes().splitlines()
        lines[row] = lines[row].replace(b'"v":1', b'"v":7')
        (story.home / "events.jsonl").write_bytes(b"\n".join(lines) + b"\n")
        assert judge(story, LATER).verdict is Verdict.CONTRADICTED


def test_the_words_of_version_1_stand() -> None:
    """They are part of the layout: to change or add one, the layouts of report and closing record get another number."""
    words = canonical([ALWAYS, CAVEATS, CONDITIONS])
    assert sha256(words) == "sha256:bd425264b92b543ecd09bcb3c2f558d47753add8e71607b7fa23b128461ddeb4"


@pytest.mark.parametrize(("said", "again", "where"), [
    ({}, {"a": 1}, ""), ({"a": 1, "b": 2}, {"a": 1}, ""), ({"a": 1}, {"a": 2}, "a"), ({"a": True}, {"a": 1}, "a"),
    ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "a.b[1]"), ([1], [1, 2], ""), ({"a": [1]}, {"a": [1, 2]}, "a"),
    ({"a": None}, {"a": {}}, "a"), ({"caveats": 1}, {"caveats": 2}, ""), (None, {"a": 1}, "")])
def test_where_two_trees_contradict(said: object, again: object, where: str) -> None:
    assert contradiction(said, again) == where
