"""One job on the node, whatever it does: arguments, hardening, stop signals, exit codes.

Training and its rehearsal share this frame, so that the laptop can not tell them apart by how they begin and
end. It must not import anything heavy, and must be hardened before the key is read.
"""
from __future__ import annotations

import argparse
import signal
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import FrameType

from remote_payload import checkpoints, data, harden, progress, seal
from remote_payload.checkpoints import Kept
from remote_payload.faults import BadSpec, Stopped
from remote_payload.progress import Records
from remote_payload.spec import Spec, read_spec

DONE, FAILED, STOPPED = 0, 1, 3
AFTER_KEEPER = 2                     # seconds: the keeper holds the same limit and is to speak first


class Stop:
    """SIGTERM, or the end of the job's own time. At once, or at the next step while `patient`."""

    def __init__(self) -> None:
        self.asked = False
        self.patient = False

    def listen(self) -> None:
        signal.signal(signal.SIGTERM, self._heard)
        signal.signal(signal.SIGALRM, self._heard)

    def _heard(self, number: int, frame: FrameType | None) -> None:
        again, self.asked = self.asked, True
        if not self.patient and not again:
            raise Stopped


@dataclass
class Job:
    """What a story works with. Paths are the keeper's; nothing of them enters a record."""

    spec: Spec
    base: Path
    out: Path
    data: Path
    checkpoint: Path | None
    records: Records
    publisher: seal.Publisher
    rule: checkpoints.Rule
    stop: Stop
    started: float


def run(argv: list[str], story: Callable[[Job], None]) -> int:
    """Runs a story under its records. Returns 0 done, 1 failed (an error record came first), 3 stopped."""
    memory = harden.harden()
    records, stop = progress.open_channel(), Stop()
    try:
        stop.listen()
        story(_prepare(argv, memory, records, stop))
        return DONE
    except Stopped:
        return STOPPED
    except BaseException as error:  # noqa: BLE001  why: its type and place may leave the node, its text may not
        records.error(error)
        return FAILED


def _prepare(argv: list[str], memory: str, records: Records, stop: Stop) -> Job:
    args = _arguments(argv)
    records.phase("checking")
    spec = read_spec(args.spec.read_bytes())
    records.limit = spec.records
    signal.alarm(min(spec.seconds, 2**30) + AFTER_KEEPER)
    args.out.mkdir(mode=0o700, parents=True, exist_ok=True)
    caches = harden.enclose(args.out)
    records.emit("advice", rule="memory", did=memory)
    records.emit("advice", rule="caches", did=caches)
    if (args.checkpoint is None) != (spec.resume is None):
        raise BadSpec
    publisher = seal.Publisher(args.out, spec.seal_to, spec.artifact_bytes, records)
    return Job(spec, args.base, args.out, args.data, args.checkpoint, records, publisher,
               checkpoints.Rule(spec.every_seconds), stop, time.monotonic())


def _arguments(argv: list[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="payload.zip", exit_on_error=False)
    for name in ("--spec", "--data", "--base", "--out"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--checkpoint", type=Path, default=None)
    try:
        return parser.parse_args(argv)
    except (argparse.ArgumentError, SystemExit):
        raise BadSpec from None


def open_cargo(job: Job) -> tuple[data.Rows, Kept | None]:
    """Reads the key, opens rows and checkpoint, and lets the key go. Nothing heavy is imported yet."""
    identity = seal.read_key()
    packed = seal.open_sealed(job.data, identity, job.spec.data)
    rows = data.read_rows(packed, job.spec.train_rows, job.spec.held_out_rows)
    if job.checkpoint is None or job.spec.resume is None:
        return rows, None
    return rows, checkpoints.unpack(seal.open_sealed(job.checkpoint, identity, job.spec.resume))
