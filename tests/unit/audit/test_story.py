"""The real story in the simulated world, with the real journal, vault and notary: what the audit says of every end."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.audit.case import Release
from orchestrator.audit.evidence import EvidenceFolder
from orchestrator.audit.notary import Notary
from orchestrator.audit.sshsig import PublicKey
from orchestrator.audit.verify import AuditResult, Verdict, audit
from orchestrator.domain.document import canonical
from orchestrator.domain.evidence import WipeEvidence, WipeOrder
from orchestrator.domain.lease import Access
from orchestrator.domain.names import Digest, LeaseKey, RunId
from orchestrator.errors import SealtuneError
from orchestrator.journal.journals import Journals
from orchestrator.rental import run
from orchestrator.vault.controller import controller_key, controller_public
from orchestrator.vault.vault import FileVault
from tests.fakes.audited import wiped
from tests.fakes.laptop import house
from tests.fakes.world import FakeClock, FakeNode, FakeNodes, World
from tests.scenario.matrix import CASES, Case, task

pytestmark = pytest.mark.evidence
RUN, RELEASE = RunId("run-1"), Release("0.1.0", Digest("sha256:pl"), (Digest("sha256:lock"),))
SEALED = {"sha256:pl": "payload.zip", "sha256:data": "dataset.age", "sha256:x": "job/adapter.age"}


class WritingNode(FakeNode):
    """A node of the simulated world whose wipe leaves the document that a real one sends."""

    evidence: EvidenceFolder

    def wipe(self, order: WipeOrder) -> WipeEvidence:
        answer = super().wipe(order)
        document = wiped(order, Digest("sha256:x"))
        resumed = {f"sha256:{n}": "checkpoint-in.age" for n in range(900, 7300, 60)}
        document["files"] = [{"path": path, "sha256": digest, "outcome": "removed"}
                             for digest, path in {**SEALED, **resumed}.items()]
        return replace(answer, evidence=self.evidence.keep(canonical(document)))


class WritingNodes(FakeNodes):
    def __init__(self, w: World, evidence: EvidenceFolder) -> None:
        super().__init__(w)
        self._evidence = evidence

    def at(self, access: Access, ssh_key: bytes, lease: LeaseKey, patience: int) -> FakeNode:
        node = WritingNode(self.w, lease, patience)
        node.evidence = self._evidence
        return node


def played(case: Case, state: Path) -> AuditResult:
    """The run to its end, twice where the first end was not the last word, and the audit of its folder."""
    w = World(case.kind, faults=dict(case.faults))
    journals, home = Journals(state, FakeClock(w)), state / "runs" / RUN
    evidence = EvidenceFolder(home / "evidence")
    for opening in (journals.create, journals.lock):
        with opening(RUN) as journal:
            try:
                run(replace(house(w), home=home, journal=journal, nodes=WritingNodes(w, evidence),
                            vault=FileVault(home / "keys"),
                            notary=Notary(home, controller_key(state), evidence, "0.1.0")), task())
                break
            except SealtuneError:
                continue
    return audit(home, frozenset({PublicKey.parse(controller_public(state))}), RELEASE)


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.name)
def test_what_happened_is_what_is_said(case: Case, tmp_path: Path) -> None:
    """However a run ends, its log, record and reports agree, and an honest run is never contradicted."""
    result = played(case, tmp_path)
    doubtful = {(c.number, c.text, c.word, c.why) for c in result.checks if c.word in ("failed", "not checked")}
    assert result.verdict is not Verdict.CONTRADICTED, doubtful
    unwiped = {12, 13, 14, 15, 20} if any("given up" in why for *_, why in doubtful) else set()
    assert {number for number, *_ in doubtful} - {7} <= unwiped, doubtful
    if case.name.endswith("plain"):
        assert result.verdict is Verdict.VERIFIED, doubtful
