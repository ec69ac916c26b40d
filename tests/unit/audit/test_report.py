"""What a report says: an in-toto statement of public facts, the same bytes for the same rows, whatever a node wrote."""
from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.audit.log import BadLog, of_bytes, of_events
from orchestrator.audit.report import PREDICATE, Cover, anchor, report, wipe_document
from orchestrator.audit.sshsig import NAMESPACE
from orchestrator.audit.verify import Verdict, audit
from orchestrator.audit.words import ALWAYS, CAVEATS
from orchestrator.domain.document import canonical, sha256
from orchestrator.domain.event import Kind
from orchestrator.domain.evidence import ReportOrder
from orchestrator.domain.names import Digest, Reason
from tests.fakes.audited import HOST_KEY, RELEASE, RUN, SIGNER, START, Story, key_of

pytestmark = pytest.mark.evidence
GOLDEN = Path(__file__).resolve().parents[2] / "golden" / "report"
JSON = st.recursive(st.none() | st.booleans() | st.integers() | st.text(max_size=5),
                    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=5), inner, max_size=4),
                    max_leaves=15)


@pytest.fixture
def good(tmp_path: Path) -> Story:
    return Story(tmp_path).told()


def read(story: Story, name: str = "lease-1/report.json") -> dict[str, Any]:
    tree: dict[str, Any] = json.loads((story.home / name).read_bytes())
    return tree


class TestReport:
    def test_it_is_a_statement_about_the_run(self, good: Story) -> None:
        tree = read(good)
        assert (tree["_type"], tree["predicateType"]) == ("https://in-toto.io/Statement/v1", PREDICATE)
        said = tree["predicate"]
        assert tree["subject"] == [{"name": RUN, "digest": {"sha256": said["events"]["head"].removeprefix("sha256:")}}]
        assert good.events[said["events"]["count"] - 1].digest() == said["events"]["head"]
        assert said["result"] == "complete" and said["lease_key"] == key_of("lease-1")

    def test_what_ran_where(self, good: Story) -> None:
        said = read(good)["predicate"]
        assert said["run"]["payload"] == RELEASE.payload
        assert said["run"]["model"] == {"repo": "lab/tiny", "commit": "c" * 40}
        assert said["run"]["dataset"] == {"digest": sha256(b"rows"), "rows": 500, "train": 450, "held_out": 50,
                                          "sealed": sha256(b"sealed rows")}
        assert said["node"]["host_keys"][0]["key"] == HOST_KEY and said["node"]["host_keys_trusted_by"] == "signed"
        assert said["node"]["host_keys"][0]["fingerprint"].startswith("SHA256:")
        assert said["node"]["trust"] == "challenged"
        assert {c["word"] for c in said["node"]["checks"]} == {"passed", "not applicable"}
        assert said["money"]["deposit"] == "450000" and said["money"]["rate_per_hour"] == "450000"

    def test_the_wipe_document_is_in_it(self, good: Story) -> None:
        wipe = read(good)["predicate"]["wipe"]
        assert sha256(canonical(wipe["document"])) == wipe["answer"]["evidence"] and wipe["problem"] == ""
        assert {"media", "files", "scans", "memory"} <= wipe["document"].keys()

    def test_it_never_claims_too_much(self, good: Story) -> None:
        said = read(good)["predicate"]
        ids = [c["id"] for c in said["caveats"]]
        assert set(ALWAYS) <= set(ids) and {"memory", "ssd"} <= set(ids) and len(ids) == len(set(ids))
        assert said["standard_level_claimed"] == "none" and not any(k["destroyed_at"] for k in said["keys"])
        assert {c["id"]: c["holds"] for c in said["ce_conditions"]}["never-plain"] == "unknown"
        assert all(CAVEATS[c["id"]] == c["text"] for c in said["caveats"])

    def test_no_private_part_is_in_it(self, good: Story) -> None:
        for path in good.home.rglob("*.json*"):
            text = path.read_text()
            assert not any(word in text for word in ("node.example", "2222", "renter@", '"canary"', "spool", "quote"))

    @pytest.mark.parametrize(("without", "result", "caveat"), [
        ({"lease-1/wipe"}, "failed", "not-wiped"),
        ({"lease-1/" + s for s in ("arm", "install", "ship", "start", "wipe")}, "nothing to wipe", None)])
    def test_what_did_not_happen(self, tmp_path: Path, without: set[str], result: str, caveat: str | None) -> None:
        said = read(Story(tmp_path, without=frozenset(without)).told())["predicate"]
        assert said["result"] == result and (caveat is None or caveat in [c["id"] for c in said["caveats"]])

    def test_simulated_is_said(self, tmp_path: Path) -> None:
        said = read(Story(tmp_path, simulated=True).told())["predicate"]
        assert said["node"]["simulated"] and "simulated" in [c["id"] for c in said["caveats"]]

    def test_an_adopted_lease_has_one_too(self, tmp_path: Path) -> None:
        """Found on a market, unknown here: only that it was rented is known."""
        story = Story(tmp_path)
        story.step("lease-1/open", {}, story.lease("lease-1"), acquires=("lease", "deposit"))
        story.add("lease-1/left", Kind.NOTED, {"reason": "stopped by the user", "evidence": None})
        story.give_back("lease-1", Reason.STOPPED)
        story.notary.close(story.events)
        said = read(story)["predicate"]
        assert said["result"] == "nothing to wipe" and said["money"]["rate_per_hour"] == "450000"
        assert audit(story.home, frozenset({SIGNER}), RELEASE).verdict is Verdict.VERIFIED


class TestTheNodesWord:
    """The document is the node's: whatever it holds, there is a report, and it is never taken for more than it is."""

    @settings(max_examples=40, deadline=None)
    @given(st.dictionaries(st.sampled_from(["files", "caveats", "not_done", "scans", "media", "x"]), JSON))
    def test_any_document_gives_a_report(self, tmp_path_factory: pytest.TempPathFactory, tree: dict[str, Any]) -> None:
        story = Story(tmp_path_factory.mktemp("run"), document=lambda _: {"schema": "sealtune/wipe/1", **tree}).told()
        result = audit(story.home, frozenset({SIGNER}), RELEASE)
        assert all(c.word == "passed" for c in result.checks if c.number in (8, 9, 10, 11))
        assert all(c.word != "passed" for c in result.checks if c.number in (13, 14, 15))

    @pytest.mark.parametrize(("document", "problem"), [
        (None, "missing"), (b"", "bounds"), (b"[]", "sealtune/wipe/1"), (b"{ }", "spelling"),
        (b'{"schema":"x"}', "sealtune"), (b'{"a":1.5}', "bounds"), (b"[" * 100, "bounds"), (b'{"x":1,"x":1}', "bounds"),
        (canonical({"schema": "sealtune/wipe/1", "x": "\x1b]52;c;"}), "printable"),
        (canonical({"schema": "sealtune/wipe/1", "\u202e": 1}), "printable"),
        (b'{"schema":"sealtune/wipe/1","x":"\\ud800"}', "bounds"), (b"\xff\xfe", "bounds")])
    def test_what_is_not_taken_in(self, document: bytes | None, problem: str) -> None:
        tree, why = wipe_document(document)
        assert tree is None and problem in why

    def test_evidence_that_is_gone_is_said(self, tmp_path: Path) -> None:
        story = Story(tmp_path)
        whole = Story(tmp_path / "whole").told().events
        cut = next(n for n, e in enumerate(whole) if str(e.deed) == "lease-1/report")
        order = ReportOrder("lease-1", key_of("lease-1"), cut, whole[cut - 1].digest(), "5a" * 16)
        story.notary.seal(order, whole)
        assert read(story)["predicate"]["wipe"]["problem"] == "missing"

    def test_it_is_spelled_as_ours(self) -> None:
        """The node's program and we must agree on the one spelling, or no document could be taken in."""
        from remote_payload.frames import canonical as theirs
        tree = {"b": [1, None, True, "ä\n\"\\/\u2028"], "a": {"z": -5, "é": ""}, "A": 2 ** 60}
        assert theirs(tree) == canonical(tree)


class TestNotary:
    def test_again_gives_the_same_bytes(self, good: Story) -> None:
        before = {p: p.read_bytes() for p in good.home.rglob("*") if p.is_file()}
        order, done = [e for e in good.events if str(e.deed) == "lease-1/report"]
        again = good.notary.seal(ReportOrder(**order.public), good.events)
        good.notary.close(good.events)
        assert {p: p.read_bytes() for p in good.home.rglob("*") if p.is_file()} == before
        assert (again.digest, again.anchor, again.signer) == tuple(done.public.values())
        assert again.signer == SIGNER.fingerprint

    def test_stock_openssh_accepts_both(self, good: Story, tmp_path: Path) -> None:
        (tmp_path / "signers").write_text(f'me namespaces="{NAMESPACE}" {SIGNER.line}\n')
        for name in ("lease-1/report.json", "closing.json"):
            subprocess.run(["ssh-keygen", "-Y", "verify", "-f", str(tmp_path / "signers"), "-I", "me", "-n", NAMESPACE,
                            "-s", str(good.home / (name + ".sig"))], input=(good.home / name).read_bytes(),
                           check=True, capture_output=True)

    def test_over_other_rows_it_is_refused(self, good: Story) -> None:
        order = ReportOrder("lease-1", key_of("lease-1"), 5, good.events[5].digest(), "00")
        for rows in (good.events, good.events[:3]):
            with pytest.raises(Exception, match="other rows"):
                good.notary.seal(order, rows)

    def test_without_its_key(self, good: Story) -> None:
        (good.folder / "controller.key").unlink()
        notary = type(good.notary)(good.home, good.folder / "none", good.evidence, "0.1.0")
        with pytest.raises(Exception, match="no signing key"):
            notary.close(good.events)

    def test_files_are_for_us_only_and_no_draft_is_left(self, good: Story) -> None:
        files = [p for p in good.home.rglob("*") if p.is_file()]
        assert {p.stat().st_mode & 0o777 for p in files} == {0o600} and not [p for p in files if p.name.startswith(".")]

    def test_the_anchor_hides_and_binds(self) -> None:
        digest = Digest("sha256:" + "11" * 32)
        assert anchor("00" * 16, digest) == sha256(bytes(16) + b"\x11" * 32)
        assert anchor("01" * 16, digest) != anchor("00" * 16, digest) != digest

    def test_a_run_without_rows_or_lease_closes(self, tmp_path: Path) -> None:
        story = Story(tmp_path)
        story.notary.close([])
        assert read(story, "closing.json")["events"] == {"count": 0, "head": "genesis"}
        assert audit(story.home, frozenset({SIGNER})).verdict is Verdict.VERIFIED


class TestClosing:
    def test_it_tells_what_the_report_could_not(self, good: Story) -> None:
        lease, = read(good, "closing.json")["leases"]
        report_ = (good.home / "lease-1" / "report.json").read_bytes()
        assert lease["report"] == sha256(report_) and lease["anchor"] == anchor(lease["salt"], sha256(report_))
        assert lease["settlement"]["refunded"] == "337500" and lease["settlement"]["final"] is True
        assert lease["ended"]["receipt"] == "0x" + "7" * 64 and lease["ended"]["at"] == START + 900
        assert all(k["destroyed_at"] for k in lease["keys"]) and lease["signer"] == SIGNER.fingerprint


class TestLog:
    def test_there_and_back(self, good: Story) -> None:
        assert of_bytes((good.home / "events.jsonl").read_bytes()) == of_events(good.events)

    @pytest.mark.parametrize("line", [b"\n", b"{}\n", b"x", b"[1]\n", b'{"v":1}\n', b"\xff\n", b"[" * 9999 + b"\n",
                                      b'{"v":1' + b"0" * 5000 + b"}\n"])
    def test_what_is_no_row(self, line: bytes) -> None:
        with pytest.raises(BadLog):
            of_bytes(line)


def test_the_layout_of_version_1_stands(tmp_path: Path) -> None:
    """Reports made by an earlier tool are made again, byte by byte, from their log alone."""
    result = audit(GOLDEN, frozenset({SIGNER}), RELEASE)
    assert result.verdict is Verdict.VERIFIED, [(c.number, c.word, c.why) for c in result.checks]
    log = of_bytes((GOLDEN / "events.jsonl").read_bytes())
    tree = json.loads((GOLDEN / "report.json").read_bytes())
    said = tree["predicate"]
    again = report(Cover(RUN, said["scope"], said["lease_key"], said["tool"]), log.first(said["events"]["count"]),
                   canonical(said["wipe"]["document"]))
    assert again == (GOLDEN / "report.json").read_bytes()
