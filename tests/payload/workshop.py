"""A job's folder as the keeper would lay it out, and the job itself as a real process with the real archive."""
from __future__ import annotations

import hashlib
import json
import os
import selectors
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import pyrage
import zstandard

REPOSITORY = Path(__file__).resolve().parents[2]
CANARY = "canary-5f1c0e2a9b7d4c3e8f60a1b2"
DEADLINE = 120                       # seconds that any one job of these tests may take
Record = dict[str, Any]


def build_archive(target: Path) -> Path:
    """payload.zip: the package's modules under their names, and its door once more at the root."""
    package = REPOSITORY / "remote_payload"
    with zipfile.ZipFile(target, "w") as archive:
        archive.write(package / "__main__.py", "__main__.py")
        for module in sorted(package.rglob("*.py")):
            archive.write(module, f"remote_payload/{module.relative_to(package)}")
    return target


def digest(content: bytes) -> str:
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def chat(question: str, answer: str, split: str = "train") -> Record:
    turns = [{"role": "user", "content": question}, {"role": "assistant", "content": answer}]
    return {"split": split, "messages": turns}


@dataclass
class Outcome:
    code: int
    records: list[Record]
    noise: str

    def kinds(self) -> list[str]:
        return [record["kind"] for record in self.records]

    def of(self, kind: str) -> list[dict[str, str]]:
        return [record["data"] for record in self.records if record["kind"] == kind]


@dataclass
class Workshop:
    """One lease's folder. `node` opens what was shipped, `home` opens what comes back."""

    folder: Path
    archive: Path
    node: Any = field(default_factory=pyrage.x25519.Identity.generate)
    home: Any = field(default_factory=pyrage.x25519.Identity.generate)

    @property
    def out(self) -> Path:
        return self.folder / "job"

    def ship(self, rows: list[Record], kind: str = "messages", **header: Any) -> tuple[int, int]:
        """Seals rows to the node as dataset.age. Returns how many are for training and how many held out."""
        counts = [sum(row["split"] == split for row in rows) for split in ("train", "held_out")]
        head = {"schema": "sealtune/rows/1", "kind": kind, "canary": CANARY, "train": counts[0],
                "held_out": counts[1], **header}
        lines = "\n".join(json.dumps(line, ensure_ascii=False) for line in [head, *rows])
        sealed = pyrage.encrypt(zstandard.compress(lines.encode()), [self.node.to_public()])
        (self.folder / "dataset.age").write_bytes(sealed)
        return counts[0], counts[1]

    def spec(self, rows: tuple[int, int], base: Path, knobs: dict[str, str], **changes: Any) -> Record:
        """Writes spec.json; `changes` replace top-level fields. Returns what was written."""
        files = [[file.name, hashlib.sha256(file.read_bytes()).hexdigest()] for file in sorted(base.iterdir())]
        spec = {
            "schema": "sealtune/spec/1", "job_id": "0123/train", "engine": "trl", "method": "lora",
            "base": {"repo": "lab/tiny", "commit": "0" * 40, "files": files},
            "knobs": sorted([name, value] for name, value in knobs.items()), "seed": 1,
            "data": digest((self.folder / "dataset.age").read_bytes()), "train_rows": rows[0],
            "held_out_rows": rows[1], "resume": None, "seal_to": str(self.home.to_public()),
            "checkpoints": {"every_seconds": 0, "keep": 2},
            "limits": {"steps": 10_000, "seconds": 600, "artifact_bytes": 1 << 28, "records": 100_000}, **changes}
        text = json.dumps(spec, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
        (self.folder / "spec.json").write_text(text)
        return spec

    def start(self, word: str, base: Path, python: Path | str = sys.executable, key: bytes | None = None,
              words: tuple[str, ...] = ()) -> Running:
        command = [str(python), "-I", str(self.archive), word, "--spec", "spec.json", "--data", "dataset.age",
                   "--base", str(base), "--out", "job", *words]
        noise = tempfile.TemporaryFile()  # noqa: SIM115  closed with the job
        earlier = scratch_folders()              # of jobs killed long ago, whose numbers come again
        process = subprocess.Popen(command, cwd=self.folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=noise, env={"PATH": os.defpath, "LANG": "C.UTF-8"})
        assert process.stdin is not None
        process.stdin.write(str(self.node).encode() + b"\n" if key is None else key)
        process.stdin.close()
        process.stdin = None
        return Running(process, noise, earlier)

    def run(self, word: str, base: Path, python: Path | str = sys.executable, **rest: Any) -> Outcome:
        return self.start(word, base, python, **rest).finish()

    def opened(self, name: str) -> bytes:
        return bytes(pyrage.decrypt((self.out / name).read_bytes(), [self.home]))

    def bring_back(self, name: str, target: Workshop) -> str:
        """Moves a sealed checkpoint to another lease: opened at home, sealed to the new node. Its digest."""
        sealed = pyrage.encrypt(self.opened(name), [target.node.to_public()])
        (target.folder / "checkpoint-in.age").write_bytes(sealed)
        return digest(sealed)


def scratch_folders(of: str = "") -> frozenset[Path]:
    return frozenset(Path("/dev/shm").glob(f"sealtune-{of}*"))


class Running:
    """A job in progress: its records as they come, signals, and its end."""

    def __init__(self, process: subprocess.Popen[bytes], noise: IO[bytes], earlier: frozenset[Path]) -> None:
        self.process, self._noise, self._earlier = process, noise, earlier
        self.records: list[Record] = []
        self._rest, self._looked_at = b"", 0
        self._until = time.monotonic() + DEADLINE

    def wait_for(self, wanted: Callable[[Record], bool]) -> Record:
        """The first record not looked at before that is wanted, within the deadline."""
        while True:
            while self._looked_at < len(self.records):
                record = self.records[self._looked_at]
                self._looked_at += 1
                if wanted(record):
                    return record
            assert self._read(), f"the job ended without it: {self.records[-3:]}"

    def signal(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def finish(self) -> Outcome:
        while self._read():
            pass
        code = self.process.wait(DEADLINE)
        for scratch in scratch_folders(f"{self.process.pid}-") - self._earlier:
            assert code == -signal.SIGKILL, "only a killed job leaves its scratch folder, for the wipe"
            shutil.rmtree(scratch)
        self._noise.seek(0)
        noise = self._noise.read().decode(errors="replace")
        self._noise.close()
        assert self.process.stdout is not None
        self.process.stdout.close()
        return Outcome(code, self.records, noise)

    def _read(self) -> bool:
        """Takes what has come. False at the end of the records."""
        assert self.process.stdout is not None
        with selectors.DefaultSelector() as selector:
            selector.register(self.process.stdout, selectors.EVENT_READ)
            if not selector.select(max(0.0, self._until - time.monotonic())):
                self.process.kill()
                raise AssertionError(f"no end within {DEADLINE} s: {self.records[-3:]}")
        chunk = os.read(self.process.stdout.fileno(), 65536)
        *lines, self._rest = (self._rest + chunk).split(b"\n")
        self.records += [json.loads(line) for line in lines]
        return bool(chunk)
