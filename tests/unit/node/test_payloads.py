"""The archive is reproducible, and the lock fits the node."""
from __future__ import annotations

import io
import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from orchestrator.domain.evidence import HardwareReport, Trust
from orchestrator.domain.names import Digest, Reason
from orchestrator.errors import LeaveNode
from orchestrator.node import agent_loader
from orchestrator.node.payloads import Payloads, build

WHEEL = "torch-2.13.0+cpu-cp311-cp311-manylinux_2_28_x86_64.whl"


def hardware(driver: str = "", **rest: object) -> HardwareReport:
    return HardwareReport(Digest("sha256:" + "0" * 64), Trust.CLAIMED, (), driver, **rest)  # type: ignore[arg-type]


def package(folder: Path) -> Path:
    for name, text in {"__init__.py": "", "__main__.py": "print('door')", "agent.py": "def main(): return 7",
                       "locks/x.lock": "x", "locks/compile.py": "", "__pycache__/a.py": "", "note.txt": "",
                       "engines/__init__.py": ""}.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(text)
    return folder


def test_same_bytes_whatever_the_dates_and_order(tmp_path: Path) -> None:
    one, two = package(tmp_path / "a"), package(tmp_path / "b")
    for file in two.rglob("*.py"):
        os.utime(file, (1, 1))
        file.chmod(0o777)
    assert build(one) == build(two)


def test_holds_the_code_and_nothing_else(tmp_path: Path) -> None:
    names = zipfile.ZipFile(io.BytesIO(build(package(tmp_path / "a")))).namelist()
    assert names == ["__main__.py", "remote_payload/__init__.py", "remote_payload/__main__.py",
                     "remote_payload/agent.py", "remote_payload/engines/__init__.py"]


def test_is_built_without_importing_the_package() -> None:
    code = ("import sys; from orchestrator.node.payloads import Payloads; p = Payloads(); len(p.archive);"
            "sys.exit(any(m.startswith('remote_payload') for m in sys.modules))")
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(("report", "engine", "variant"), [
    (hardware("580.65.06"), "rehearsal", "rehearsal"),
    (hardware("580.65.06"), "trl", "cu13"), (hardware("590.10", compute="8.9"), "trl", "cu13"),
    (hardware("580.65.06", compute="7.0"), "trl", "cu128"), (hardware("570.133.20"), "trl", "cu128"),
    (hardware("525.60.13"), "trl", "cu128"), (hardware(), "trl", "cpu-pypi"),
    (hardware("580.65.06", simulated=True), "trl", "cpu-pypi"),
    (hardware(python="3.11", wheels=(WHEEL,)), "trl", "cpu"),
    (hardware("580.65.06", simulated=True, python="3.11", wheels=(WHEEL,)), "trl", "cpu"),
    (hardware(python="3.12", wheels=(WHEEL,)), "trl", "cpu-pypi"),
    (hardware(python="3.11", wheels=(WHEEL.replace("2.13.0", "2.12.0"),)), "trl", "cpu-pypi"),
    (hardware(python="3.11", wheels=(WHEEL.replace("x86_64", "aarch64"),)), "trl", "cpu-pypi")])
def test_the_lock_that_fits(report: HardwareReport, engine: str, variant: str) -> None:
    payloads = Payloads()
    chosen = payloads.fitting(report, engine)
    assert chosen.variant == variant and chosen.digest == payloads.digest


def test_driver_that_is_too_old() -> None:
    with pytest.raises(LeaveNode) as left:
        Payloads().fitting(hardware("470.10"), "trl")
    assert left.value.reason is Reason.UNSUITABLE and "470.10" in str(left.value)


def run_loader(archive: bytes, sent: bytes) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(["sh", "-c", agent_loader.command(archive)], input=sent, capture_output=True, timeout=60,
                          check=False)


def test_loader_starts_the_agent_and_leaves_the_rest_of_the_line_to_it(tmp_path: Path) -> None:
    folder = package(tmp_path / "a")
    (folder / "agent.py").write_text("import sys\ndef main():\n sys.stdout.write(sys.stdin.read())\n return 7\n")
    archive = build(folder)
    done = run_loader(archive, agent_loader.preamble(archive) + b"for the agent")
    assert (done.returncode, done.stdout) == (7, b"for the agent")


def test_loader_refuses_other_bytes(tmp_path: Path) -> None:
    archive = build(package(tmp_path / "a"))
    damaged = bytearray(agent_loader.preamble(archive))
    damaged[-1] ^= 1
    assert run_loader(archive, bytes(damaged)).returncode == 97
    assert run_loader(archive, agent_loader.preamble(archive)[:100]).returncode == 97
    assert run_loader(archive, (1 << 62).to_bytes(8, "big")).returncode == 97


def test_loader_is_one_line_for_any_shell() -> None:
    command = agent_loader.command(b"x")
    assert "\n" not in command and "!" not in command and command.count("'") == 2
