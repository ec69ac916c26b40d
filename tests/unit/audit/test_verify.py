"""The audit over a whole run: a good one is verified, and each thing that can be wrong has its number."""
from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.audit.case import Release
from orchestrator.audit.verify import AuditResult, Verdict, audit
from orchestrator.domain.document import canonical, sha256
from orchestrator.domain.evidence import Check, Outcome
from orchestrator.domain.names import Reason
from orchestrator.errors import BadInput
from tests.fakes.audited import RELEASE, RUN, SIGNER, Story, usdc

pytestmark = pytest.mark.evidence
TRUSTED = frozenset({SIGNER})
SIGNED = ("closing.json", "closing.json.sig", "events.jsonl", "lease-1/report.json", "lease-1/report.json.sig")


class WipedLater(Story):
    """The user's own server: out of reach at the release, which signs its report all the same; wiped days later."""

    def backward(self, scope: str, reason: Reason = Reason.DONE) -> None:
        self.without = frozenset({f"{scope}/wipe", f"{scope}/destroy"})
        self.ended = lambda end: replace(end, node_gone=False, receipt=None)
        super().backward(scope, reason)
        self.without = frozenset({f"{scope}/{step}" for step in ("left", "stop", "report", "end", "settle")})
        super().backward(scope, reason)


def judge(story: Story, release: Release | None = RELEASE) -> AuditResult:
    return audit(story.home, TRUSTED, release)


def word(result: AuditResult, number: int) -> str:
    """What check `number` said, of the last lease."""
    return [c.word for c in result.checks if c.number == number][-1]


def not_passed(result: AuditResult) -> dict[int, tuple[str, str]]:
    return {c.number: (c.word, c.why) for c in result.checks if c.word not in ("passed", "not applicable")}


@pytest.fixture
def good(tmp_path: Path) -> Story:
    return Story(tmp_path).told()


class TestGood:
    def test_it_is_verified(self, good: Story) -> None:
        result = judge(good)
        assert not_passed(result) == {} and result.verdict is Verdict.VERIFIED and result.verdict.exit_code == 0
        assert result.fingerprint == SIGNER.fingerprint and not result.simulated
        assert [c.number for c in result.checks] == list(range(1, 21))

    def test_exported_files_say_the_same(self, good: Story, tmp_path: Path) -> None:
        out = tmp_path / "exported"
        out.mkdir()
        for name in SIGNED:
            shutil.copy(good.home / name, out / Path(name).name)
        assert audit(out, TRUSTED, RELEASE).verdict is Verdict.VERIFIED

    def test_without_the_closing_record_it_is_incomplete(self, good: Story, tmp_path: Path) -> None:
        out = tmp_path / "exported"
        out.mkdir()
        for name in SIGNED[3:]:
            shutil.copy(good.home / name, out / Path(name).name)
        result = audit(out, TRUSTED, RELEASE)
        assert result.verdict is Verdict.INCOMPLETE and [word(result, n) for n in (8, 9)] == ["passed", "passed"]
        assert result.fingerprint == SIGNER.fingerprint

    def test_a_stranger_s_key_is_at_best_incomplete(self, good: Story) -> None:
        result = audit(good.home, frozenset(), RELEASE)
        assert result.verdict is Verdict.INCOMPLETE and set(not_passed(result)) == {1, 8}
        assert SIGNER.fingerprint in not_passed(result)[8][1] and result.fingerprint == SIGNER.fingerprint

    def test_two_leases_the_first_lost(self, tmp_path: Path) -> None:
        story = Story(tmp_path, twice=True).told()
        result = judge(story)
        assert result.verdict is Verdict.INCOMPLETE and len(result.checks) == 7 + 2 * 13
        bad = [(c.number, c.word, c.text) for c in result.checks if c.word == "not checked"]
        assert {n for n, _, _ in bad} == {12, 13, 14, 18} and all(text.startswith("lease-1") for _, _, text in bad)

    def test_a_wipe_after_the_report_is_sealed_by_the_closing_record(self, tmp_path: Path) -> None:
        """An own server that was out of reach when it was left, and wiped later: `sealtune end RUN`."""
        story = WipedLater(tmp_path).told()
        assert json.loads((story.home / "lease-1/report.json").read_bytes())["predicate"]["result"] == "failed"
        (part,) = json.loads((story.home / "closing.json").read_bytes())["leases"]
        result = judge(story)
        assert not_passed(result) == {} and result.verdict is Verdict.VERIFIED
        (wiped,) = [c.why for c in result.checks if c.number == 12]
        assert f"after the report was signed, the closing record holds its evidence {part['wiped']['evidence']}" in wiped

    def test_without_its_closing_record_a_later_wipe_is_not_believed(self, tmp_path: Path) -> None:
        story = WipedLater(tmp_path).told()
        (story.home / "closing.json").unlink()
        assert word(judge(story), 12) == "not checked"

    def test_a_closing_record_with_other_evidence_contradicts_a_later_wipe(self, tmp_path: Path) -> None:
        story = WipedLater(tmp_path).told()
        tree = json.loads((story.home / "closing.json").read_bytes())
        tree["leases"][0]["wiped"]["evidence"] = sha256(b"another document")
        (story.home / "closing.json").write_bytes(canonical(tree))
        assert word(judge(story), 12) == "failed"

    def test_the_evidence_of_a_later_wipe_must_be_there(self, tmp_path: Path) -> None:
        story = WipedLater(tmp_path).told()
        shutil.rmtree(story.home / "evidence")
        assert {n for n, (said, _) in not_passed(judge(story)).items() if said == "not checked"} == {13, 14, 15}

    def test_nothing_there(self, tmp_path: Path) -> None:
        for folder in (tmp_path, tmp_path / "nowhere"):
            with pytest.raises(BadInput, match="no report"):
                audit(folder, TRUSTED)


CASES: list[tuple[str, dict[str, Any], int, str]] = [
    ("no wipe", {"without": frozenset({"lease-1/wipe"})}, 12, "not checked"),
    ("wipe partial", {"answer": lambda a: replace(a, outcome=Outcome.PARTIAL)}, 12, "failed"),
    ("files left", {"answer": lambda a: replace(a, leftovers=2)}, 12, "failed"),
    ("control not found", {"document": lambda d: d["scans"][0].update(decoy_found=False) or d}, 13, "failed"),
    ("control not gone", {"document": lambda d: d["scans"][1].update(decoy_found=True) or d}, 13, "failed"),
    ("no control", {"document": lambda d: d["scans"][0].update(decoy_found=None) or d}, 13, "not checked"),
    ("another nonce", {"document": lambda d: {**d, "nonce": "00"}}, 13, "failed"),
    ("another lease", {"document": lambda d: {**d, "lease": "00"}}, 13, "failed"),
    ("canary left", {"document": lambda d: d["scans"][1].update(hits=1) or d}, 14, "failed"),
    ("canary before", {"document": lambda d: d["scans"][0].update(hits=1) or d}, 14, "failed"),
    ("canary counted", {"answer": lambda a: replace(a, hits=3)}, 14, "failed"),
    ("scan cut", {"document": lambda d: d["scans"][1].update(complete=False) or d}, 14, "not checked"),
    ("scan of nothing", {"document": lambda d: d["scans"][1].update(patterns=0) or d}, 14, "not checked"),
    ("scan missing", {"document": lambda d: {**d, "scans": d["scans"][:1]}}, 14, "failed"),
    ("dataset not listed", {"document": lambda d: {**d, "files": [d["files"][0], *d["files"][2:]]}}, 15, "failed"),
    ("dataset perhaps not listed", {"document": lambda d: {**d, "files": d["files"][:1], "files_not_listed": 3}}, 15,
     "not checked"),
    ("a file left", {"document": lambda d: d["files"][1].update(outcome="left") or d}, 15, "failed"),
    ("nothing there any more", {"document": lambda d: {**d, "files": [], "files_total": 0}}, 15, "not checked"),
    ("hardware not as claimed, and used", {"checks": (Check(1, "video memory", False, "8 GiB"),)}, 16, "failed"),
    ("hardware not fully seen", {"checks": (Check(1, "video memory", None, "no answer"),)}, 16, "not checked"),
    ("simulated", {"checks": (Check(1, "video memory", None, "no answer"),), "simulated": True}, 16, "not applicable"),
    ("nothing claimed", {"claim": None}, 16, "not applicable"),
    ("money lost", {"settlement": lambda s: replace(s, refunded=usdc(337_499))}, 19, "failed"),
    ("negative", {"settlement": lambda s: replace(s, refunded=usdc(-1), paid=usdc(447_751))}, 19, "failed"),
    ("too dear", {"settlement": lambda s: replace(s, deposit=usdc(1_000_000), paid=usdc(997_750), refunded=usdc(0))},
     19, "failed"),
    ("may change", {"settlement": lambda s: replace(s, final=False)}, 19, "not checked"),
    ("full refund, yet paid", {"ended": lambda e: replace(e, full_refund=True)}, 19, "failed"),
    ("free", {"settlement": lambda s: replace(s, deposit=usdc(0), paid=usdc(0), fee=usdc(0), refunded=usdc(0))}, 19,
     "not applicable"),
    ("not settled", {"without": frozenset({"lease-1/settle"})}, 19, "not checked"),
    ("keys kept", {"without": frozenset({"lease-1/destroy"})}, 20, "not checked"),
    ("home key kept", {"without": frozenset({"run/forget"})}, 7, "not checked"),
    ("not ended", {"without": frozenset({"lease-1/end"})}, 18, "not checked"),
    ("no report", {"without": frozenset({"lease-1/report"})}, 6, "not checked"),
]


@pytest.mark.parametrize(("change", "number", "said"), [c[1:] for c in CASES], ids=[c[0] for c in CASES])
def test_each_wrong_has_its_number(tmp_path: Path, change: dict[str, Any], number: int, said: str) -> None:
    """The log itself is sound and signed: it is what happened that was wrong."""
    result = judge(Story(tmp_path, **change).told())
    wanted = {"failed": Verdict.CONTRADICTED, "not checked": Verdict.INCOMPLETE, "not applicable": Verdict.VERIFIED}
    assert result.verdict is wanted[said], not_passed(result)
    assert word(result, number) == said and [word(result, n) for n in (1, 2, 3, 4, 5)] == ["passed"] * 5
    if number != 6:                          # there a report is missing
        assert [word(result, n) for n in (8, 9, 10, 11)] == ["passed"] * 4


class TestLeftBehind:
    """What a lease may be left for before anything of ours is on the node."""

    def test_hardware_not_as_claimed_and_left(self, tmp_path: Path) -> None:
        ships = frozenset(f"lease-1/{s}" for s in ("install", "challenge", "ship", "start", "arrived", "collect"))
        story = Story(tmp_path, without=ships, checks=(Check(1, "video memory", False, "8 GiB"),),
                      ended=lambda e: replace(e, full_refund=True),
                      settlement=lambda s: replace(s, paid=usdc(0), fee=usdc(0), refunded=usdc(450_000))).told()
        result = judge(story)
        assert result.verdict is Verdict.VERIFIED, not_passed(result)
        assert [word(result, n) for n in (15, 16, 17)] == ["not applicable"] * 3

    def test_never_on_the_node(self, tmp_path: Path) -> None:
        gone = frozenset(f"lease-1/{s}" for s in ("arm", "inspect", "install", "challenge", "ship", "start", "arrived",
                                                  "collect", "stop", "wipe"))
        result = judge(Story(tmp_path, without=gone).told())
        assert result.verdict is Verdict.VERIFIED, not_passed(result)
        assert [word(result, n) for n in (12, 13, 14)] == ["not applicable"] * 3


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good run's files; every test puts back what it changed."""
    story = Story(tmp_path_factory.mktemp("run")).told()
    assert judge(story).verdict is Verdict.VERIFIED
    return story.home


class TestTampered:
    """Nobody but the key's owner changes a byte unseen."""

    @staticmethod
    def flipped(folder: Path, name: str, at: int, mask: int) -> Verdict:
        path = folder / name
        before = path.read_bytes()
        changed = bytearray(before)
        changed[at % len(before)] ^= mask
        try:
            path.write_bytes(changed)
            return audit(folder, TRUSTED, RELEASE).verdict
        finally:
            path.write_bytes(before)

    @settings(max_examples=200, deadline=None)
    @given(name=st.sampled_from(SIGNED), at=st.integers(0, 10 ** 6), mask=st.integers(1, 255))
    def test_any_flipped_byte(self, folder: Path, name: str, at: int, mask: int) -> None:
        assert self.flipped(folder, name, at, mask) is Verdict.CONTRADICTED

    @pytest.mark.full
    @pytest.mark.parametrize("name", SIGNED)
    def test_every_byte_of_every_file(self, folder: Path, name: str) -> None:
        size = len((folder / name).read_bytes())
        assert {self.flipped(folder, name, at, 1 << at % 8) for at in range(size)} == {Verdict.CONTRADICTED}

    @pytest.mark.parametrize("name", SIGNED)
    @pytest.mark.parametrize("change", [lambda d: d[:-1], lambda d: d + b"\n", lambda d: d + b" ", lambda d: b"\n" + d,
                                        lambda d: d[:len(d) // 2], lambda d: b"", lambda d: d + d])
    def test_cut_or_grown(self, folder: Path, name: str, change: Callable[[bytes], bytes]) -> None:
        path = folder / name
        before = path.read_bytes()
        try:
            path.write_bytes(change(before))
            assert audit(folder, TRUSTED, RELEASE).verdict is Verdict.CONTRADICTED
        finally:
            path.write_bytes(before)

    @settings(max_examples=40, deadline=None)
    @given(st.data())
    def test_lines_of_the_log_dropped_doubled_swapped(self, folder: Path, data: st.DataObject) -> None:
        path = folder / "events.jsonl"
        before = path.read_bytes()
        lines = before.splitlines(keepends=True)
        one, two = (data.draw(st.integers(0, len(lines) - 1)) for _ in range(2))
        how = data.draw(st.sampled_from(["drop", "double", "swap"]))
        changed = list(lines)
        if how == "drop":
            del changed[one]
        elif how == "double":
            changed.insert(two, lines[one])
        else:
            changed[one], changed[two] = lines[two], lines[one]
        if changed == lines:
            return
        try:
            path.write_bytes(b"".join(changed))
            assert audit(folder, TRUSTED, RELEASE).verdict is Verdict.CONTRADICTED
        finally:
            path.write_bytes(before)

    @pytest.mark.parametrize(("one", "two"), [("closing.json", "lease-1/report.json"),
                                              ("closing.json.sig", "lease-1/report.json.sig")])
    def test_files_swapped(self, folder: Path, one: str, two: str) -> None:
        first, second = (folder / one).read_bytes(), (folder / two).read_bytes()
        try:
            (folder / one).write_bytes(second)
            (folder / two).write_bytes(first)
            assert audit(folder, TRUSTED, RELEASE).verdict is Verdict.CONTRADICTED
        finally:
            (folder / one).write_bytes(first)
            (folder / two).write_bytes(second)


class TestOfTwoRuns:
    def test_a_report_of_another_run(self, good: Story, tmp_path: Path) -> None:
        """Signed by the right key, and not of this run."""
        other = Story(tmp_path / "other", claim=replace(good.claim, count=2) if good.claim else None).told()
        for name in ("report.json", "report.json.sig"):
            shutil.copy(other.home / "lease-1" / name, good.home / "lease-1" / name)
        result = judge(good)
        assert result.verdict is Verdict.CONTRADICTED and word(result, 8) == "passed"
        assert word(result, 10) == word(result, 11) == word(result, 18) == "failed"

    def test_a_log_of_another_run(self, good: Story, tmp_path: Path) -> None:
        other = Story(tmp_path / "other", simulated=True).told()
        shutil.copy(other.home / "events.jsonl", good.home / "events.jsonl")
        result = judge(good)
        assert [word(result, n) for n in (3, 4, 5, 10)] == ["passed", "failed", "failed", "failed"]

    def test_a_report_too_many(self, good: Story) -> None:
        shutil.copytree(good.home / "lease-1", good.home / "lease-2")
        report = (good.home / "lease-2" / "report.json").read_bytes()
        (good.home / "lease-2" / "report.json").write_bytes(report.replace(b'"scope":"lease-1"', b'"scope":"lease-2"'))
        assert word(judge(good), 6) == "failed"


@settings(max_examples=100, deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(
                        ["schema", "run", "events", "count", "head", "predicate", "scope", "wipe", "node", "_type",
                         "predicateType", "subject", "tool"]), inner, max_size=5), max_leaves=20))
def test_a_strangers_files_never_break_the_audit(tmp_path_factory: pytest.TempPathFactory, tree: object) -> None:
    from orchestrator.domain.document import canonical
    folder = tmp_path_factory.mktemp("strange")
    try:
        data = canonical(tree)
    except ValueError:
        return
    for name in ("closing.json", "report.json", "closing.json.sig", "report.json.sig", "events.jsonl"):
        (folder / name).write_bytes(data)
    assert audit(folder, TRUSTED, RELEASE).verdict is Verdict.CONTRADICTED


def test_what_a_check_says_is_one_printable_line(good: Story) -> None:
    result = judge(good)
    assert all(c.why.isprintable() and c.text.isprintable() for c in result.checks) and RUN not in result.fingerprint
