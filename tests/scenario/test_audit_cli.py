"""A report is accepted by stock OpenSSH, audited by anybody, and no byte of it can be changed unnoticed."""
from __future__ import annotations

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from orchestrator.audit.sshsig import NAMESPACE
from orchestrator.audit.verify import Verdict, audit
from orchestrator.settings.read import load_settings
from orchestrator.wiring import this_release, trusted_key
from tests.scenario.lab import Finished, Lab, Laptop

pytestmark = pytest.mark.evidence

SIGNED = ("lease-1/report.json", "closing.json")
FILES = (*SIGNED, "events.jsonl")


def signers(finished: Finished, folder: Path) -> Path:
    """The laptop's key as an allowed_signers file, made with stock ssh-keygen."""
    key = folder / "key"
    shutil.copy(finished.laptop.state / "controller.key", key)
    key.chmod(0o600)
    public = subprocess.run(["ssh-keygen", "-y", "-f", str(key)], capture_output=True, text=True, check=True).stdout
    key.unlink()
    path = folder / "allowed_signers"
    path.write_text(f'renter namespaces="{NAMESPACE}" {public}')
    return path


@pytest.mark.parametrize("name", SIGNED)
def test_stock_openssh_accepts_it_and_refuses_a_changed_file(finished: Finished, tmp_path: Path, name: str) -> None:
    allowed, file = signers(finished, tmp_path), finished.home / name
    verify = ["ssh-keygen", "-Y", "verify", "-f", str(allowed), "-I", "renter", "-n", NAMESPACE, "-s", f"{file}.sig"]
    data = file.read_bytes()
    assert subprocess.run(verify, input=data, capture_output=True).returncode == 0
    assert subprocess.run(verify, input=data[:-1] + bytes([data[-1] ^ 1]), capture_output=True).returncode != 0


def test_every_check_is_numbered_and_says_its_word(finished: Finished) -> None:
    found = finished.laptop.sealtune("audit", finished.run, "--json").tree
    assert (found["verdict"], found["simulated"]) == ("verified", True)
    assert found["signer"].startswith("SHA256:")
    numbers = [check["number"] for check in found["checks"]]
    assert numbers == list(range(1, len(numbers) + 1))
    assert len(numbers) >= 20
    assert {check["word"] for check in found["checks"]} <= {"passed", "not applicable"}
    assert all(check["why"] for check in found["checks"] if check["word"] == "not applicable")
    told = finished.laptop.sealtune("audit", finished.run).out
    assert "verdict: verified (simulated hardware" in told


@pytest.mark.parametrize("name", FILES)
def test_a_flipped_byte_is_contradicted(finished: Finished, tmp_path: Path, name: str) -> None:
    copy = copied(finished, tmp_path)
    flip(copy / name, (copy / name).stat().st_size // 2)
    found = finished.laptop.sealtune("audit", copy, "--json", code=6).tree
    assert found["verdict"] == "contradicted"
    assert any(check["word"] == "failed" and check["why"] for check in found["checks"])


@pytest.mark.parametrize("name", FILES)
def test_a_byte_flipped_anywhere_is_contradicted(finished: Finished, tmp_path: Path, name: str) -> None:
    copy, whole = copied(finished, tmp_path), (finished.home / name).read_bytes()
    chance = random.Random(name)
    _flipped_everywhere(finished, copy, name, sorted({0, len(whole) - 1, *chance.sample(range(len(whole)), 12)}))


@pytest.mark.full
@pytest.mark.parametrize("name", FILES)
def test_every_single_byte_counts(finished: Finished, tmp_path: Path, name: str) -> None:
    _flipped_everywhere(finished, copied(finished, tmp_path), name, range((finished.home / name).stat().st_size))


def _flipped_everywhere(finished: Finished, copy: Path, name: str, places: object) -> None:
    """In this process, since a command a byte would take hours."""
    settings = load_settings(finished.laptop.state)
    trusted, known, whole = trusted_key(settings), this_release(), (copy / name).read_bytes()
    assert audit(copy, trusted, known).verdict is Verdict.VERIFIED
    for place in places:  # type: ignore[attr-defined]
        flip(copy / name, place)
        assert audit(copy, trusted, known).verdict is Verdict.CONTRADICTED, f"byte {place} of {name}"
        (copy / name).write_bytes(whole)


@pytest.mark.parametrize(("name", "code"), [
    ("events.jsonl", 3), ("closing.json", 3), ("closing.json.sig", 3), ("lease-1/report.json.sig", 3)])
def test_a_missing_part_is_no_pass(finished: Finished, tmp_path: Path, name: str, code: int) -> None:
    copy = copied(finished, tmp_path)
    (copy / name).unlink()
    found = finished.laptop.sealtune("audit", copy, "--json", code=code).tree
    assert any(check["word"] in ("not checked", "failed") and check["why"] for check in found["checks"])


def test_somebody_elses_report_needs_a_signer(lab: Lab, finished: Finished, tmp_path: Path) -> None:
    (tmp_path / "signers").mkdir()
    allowed, copy = signers(finished, tmp_path / "signers"), copied(finished, tmp_path)
    stranger = lab.laptop(tmp_path / "other")
    mine = finished.laptop.sealtune("audit", finished.run, "--json").tree["signer"]
    unknown = stranger.sealtune("audit", copy, code=3)
    assert "verdict: incomplete" in unknown.out
    assert f"signed by {mine}" in unknown.err
    assert stranger.sealtune("audit", copy, "--signer", allowed, "--json").tree["verdict"] == "verified"

    other = tmp_path / "other_signers"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(tmp_path / "k")], check=True)
    other.write_text(f'other namespaces="{NAMESPACE}" {(tmp_path / "k.pub").read_text()}')
    assert stranger.sealtune("audit", copy, "--signer", other, "--json", code=3).tree["verdict"] == "incomplete"
    assert "--signer" in stranger.sealtune("audit", copy, "--signer", tmp_path / "none", code=2).err


def test_there_is_nothing_to_audit(laptop: Laptop, tmp_path: Path) -> None:
    assert "no run, no folder and no report 'nothing'" in laptop.sealtune("audit", "nothing", code=10).err
    (tmp_path / "empty").mkdir()
    assert "hint:" in laptop.sealtune("audit", tmp_path / "empty", code=2).err


def copied(finished: Finished, folder: Path) -> Path:
    """The files that somebody would hand on: report, closing record, log, evidence; nothing else of the run."""
    target = folder / "handed-on"
    target.mkdir(parents=True)
    for name in ("closing.json", "closing.json.sig", "events.jsonl"):
        shutil.copy(finished.home / name, target)
    shutil.copytree(finished.home / "evidence", target / "evidence")
    (target / "lease-1").mkdir()
    for name in ("report.json", "report.json.sig"):
        shutil.copy(finished.home / "lease-1" / name, target / "lease-1")
    return target


def flip(file: Path, place: int) -> None:
    with file.open("r+b") as handle:
        byte = os.pread(handle.fileno(), 1, place)[0]
        os.pwrite(handle.fileno(), bytes([byte ^ 1]), place)
