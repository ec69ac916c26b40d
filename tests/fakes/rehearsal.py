"""A rehearsal job for a lab node: rows sealed to the lease, a spec, and what must come home."""
from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from orchestrator.domain.document import digest_of, sha256
from orchestrator.domain.names import Digest
from orchestrator.domain.spool import PART_BYTES, Spool
from orchestrator.domain.training import BaseModel, CheckpointRule, Job, Limits, TrainingSpec

CANARY = "canary-0d9e51c2b7a84f6e93d1"


def spool(path: Path, name: str) -> Spool:
    """The spool of a file that lies there."""
    data = path.read_bytes()
    parts = tuple(sha256(data[i:i + PART_BYTES]) for i in range(0, len(data), PART_BYTES)) or (sha256(b""),)
    return Spool(name, sha256(data), len(data), parts, str(path.parent))


def _identity() -> Any:
    import pyrage
    return pyrage.x25519.Identity.generate()


@dataclass
class Rehearsal:
    """One lease's data and job. `node` opens what is shipped, `home` what comes back."""

    folder: Path
    lease: str
    steps: int = 5
    step_seconds: str = "0"
    extra: dict[str, str] = field(default_factory=dict)
    node: Any = field(default_factory=_identity)
    home: Any = field(default_factory=_identity)

    def dataset(self, rows: int = 20) -> Spool:
        import pyrage
        import zstandard
        lines = [{"schema": "sealtune/rows/1", "kind": "messages", "canary": CANARY, "train": rows - 2, "held_out": 2}]
        for number in range(rows):
            turns = [{"role": "user", "content": f"question {number}"}, {"role": "assistant", "content": f"a{number}"}]
            lines.append({"split": "held_out" if number < 2 else "train", "messages": turns})
        plain = "\n".join(json.dumps(line) for line in lines).encode()
        (self.folder / "dataset.age").write_bytes(pyrage.encrypt(zstandard.compress(plain), [self.node.to_public()]))
        return spool(self.folder / "dataset.age", "dataset.age")

    def job(self, data: Spool, resume: Digest | None = None, **limits: int) -> Job:
        knobs = {"rehearsal_steps": str(self.steps), "rehearsal_step_seconds": self.step_seconds, **self.extra}
        bounds = {"steps": 10_000, "seconds": 600, "artifact_bytes": 1 << 28, "records": 10_000, **limits}
        spec = TrainingSpec(
            schema="sealtune/spec/1", job_id=f"{self.lease}/train", engine="rehearsal", method="lora",
            base=BaseModel("http://127.0.0.1:9", "lab/none", "0" * 40, ()), knobs=tuple(sorted(knobs.items())), seed=1,
            data=data.sha256, train_rows=18, held_out_rows=2, resume=resume, seal_to=str(self.home.to_public()),
            checkpoints=CheckpointRule(every_seconds=0, keep=2), limits=Limits(**bounds))
        return Job(spec.job_id, spec, digest_of(spec))

    @property
    def secret(self) -> bytes:
        return str(self.node).encode() + b"\n"

    def opened(self, home: Path, name: str) -> bytes:
        import pyrage
        return bytes(pyrage.decrypt((home / name).read_bytes(), [self.home]))


def hash_of(path: Path) -> str:
    return "sha256:" + hashlib.sha256(path.read_bytes()).hexdigest()
