"""What an audit costs, beside what cannot be avoided: the sha256 of the same bytes, in the same run, on the same machine.

The ratio is printed (`-s` shows it) and kept as a property of the test in a JUnit file; no time is judged, since a time is
the machine's. `full`: 50 MB of log, as a run would have after months; in the default run the same at a fiftieth.
"""
from __future__ import annotations

import resource
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from orchestrator.audit.verify import AuditResult, Verdict, audit
from orchestrator.domain.document import sha256
from orchestrator.domain.event import Kind
from tests.fakes.audited import RELEASE, SIGNER, Story

pytestmark = pytest.mark.evidence
MB, ROW = 1_000_000, 700                 # bytes of a row as below, roughly


class Long(Story):
    """A run with so many bytes of rows before its lease is over."""

    size = 0

    def arm(self, scope: str) -> None:
        super().arm(scope)
        for number in range(self.size // ROW):
            self.add(f"{scope}/seen/{number}", Kind.NOTED, {"text": "x" * 400, "numbers": list(range(20))})


def seconds(what: Callable[[], object]) -> float:
    before = time.perf_counter()
    what()
    return time.perf_counter() - before


@pytest.mark.parametrize("size", [MB, pytest.param(50 * MB, marks=pytest.mark.full)])
def test_audit_of_a_long_log(tmp_path: Path, size: int, record_property: Callable[[str, object], None]) -> None:
    story = Long(tmp_path)
    story.size = size
    story.told()
    data = (story.home / "events.jsonl").read_bytes()
    assert 0.9 * size < len(data) < 1.3 * size
    found: list[AuditResult] = []
    took = seconds(lambda: found.append(audit(story.home, frozenset({SIGNER}), RELEASE)))
    reference = min(seconds(lambda: sha256(data)) for _ in range(3))
    assert found[0].verdict is Verdict.VERIFIED
    told = {"bytes": len(data), "audit_s": round(took, 3), "sha256_s": round(reference, 4),
            "ratio": round(took / reference), "peak_mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}
    for name, value in told.items():
        record_property(name, value)
    print(told)
