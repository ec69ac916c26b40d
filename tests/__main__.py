"""`python3 -m tests [pytest arguments]`: sets up what the tests need, then runs them with no route but loopback.

Set-up: the product's environment, the test tools on top of it, and a folder of wheels for the nodes that the tests
install. The default run leaves out the long form of each suite (marker `full`) and says so.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT))

from orchestrator import bootstrap  # noqa: E402

WHEELS = ROOT / ".wheels"
LOCKS = ROOT / "remote_payload" / "locks"
VARIANTS = ("uv", "rehearsal", "cpu")
SIDE_BY_SIDE = ("-n", "2", "--no-loadscope-reorder")      # conftest.py says what goes where


def main() -> int:
    if Path(sys.prefix).resolve() != bootstrap.VENV.resolve():
        if problem := bootstrap.ensure(bootstrap.VENV, bootstrap.LOCK, ROOT / "tests" / "requirements.lock"):
            print(problem, file=sys.stderr)
            return 1
        os.execv(bootstrap.PYTHON, [str(bootstrap.PYTHON), "-m", "tests", *sys.argv[1:]])
    for tool, package in (("sshd", "openssh-server"), ("ssh-keygen", "openssh-client"), ("npm", "npm")):
        if not shutil.which(tool, path=f"{os.environ['PATH']}:/usr/sbin"):
            say(f"{tool} is not installed; what needs it will fail or say so\nhint: sudo apt install {package}")
    fill_wheels()
    fill_tools()
    return run_pytest(sys.argv[1:])


def fill_wheels() -> None:
    """Everything that a node installs in the tests, downloaded and checked once."""
    for variant in VARIANTS:
        lock = LOCKS / f"{variant}.lock"
        mark = WHEELS / f"{variant}.lock"
        if mark.is_file() and mark.read_bytes() == lock.read_bytes():
            continue
        WHEELS.mkdir(exist_ok=True)
        say(f"filling the wheel folder for {variant}")
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
                   "--require-hashes", "--only-binary", ":all:", "-d", str(WHEELS), "-r", str(lock)]
        done = subprocess.run(command, check=False)
        if done.returncode and variant == "cpu":
            say("the CPU build of torch is not at hand; the registry's own build is taken, which is far larger")
            done = subprocess.run([*command[:-1], str(LOCKS / "cpu-pypi.lock")], check=False)
        if done.returncode:
            raise SystemExit(f"tests: the wheels of {variant} could not be downloaded")
        shutil.copy(LOCKS / f"{variant}.lock", mark)


def fill_tools() -> None:
    """The lab's chain, and what proves the contract: compiler, forge, slither, halmos. Each is checked against a pin."""
    from orchestrator.lab import anvil

    tools = WHEELS / "tools"
    tools.mkdir(parents=True, exist_ok=True)
    found = anvil.find(tools)
    if not found:
        say("no anvil could be had: the lab's chain is the small one over py-evm")
    os.environ["SEALTUNE_ANVIL"] = str(found or "none")
    if subprocess.run([sys.executable, "-m", "tests.escrow.tools"], check=False, cwd=ROOT).returncode:
        say("the tools that prove the escrow could not be had; their tests are skipped")


def run_pytest(arguments: list[str]) -> int:
    """pytest in a network namespace of its own where that can be had; always without a package index."""
    os.chdir(ROOT)
    os.environ.update({"SEALTUNE_LAB_WHEELS": str(WHEELS), "PIP_NO_INDEX": "1", "UV_OFFLINE": "1", "OMP_NUM_THREADS": "1",
                       "PIP_FIND_LINKS": str(WHEELS), "PYTHONDONTWRITEBYTECODE": "1"})
    if not any(a.startswith("-m") for a in arguments):
        say("leaving out the long forms (marker `full`); run them with: python3 -m tests -m full")
        arguments = ["-m", "not full", *arguments]
    if not only_loopback():
        say("no network namespace could be made here: the tests run beside the machine's own network")
    return subprocess.run([sys.executable, "-m", "pytest", *SIDE_BY_SIDE, *arguments], check=False).returncode


def only_loopback() -> bool:
    """Leave the machine's network for a new one with only `lo` in it, up. False where that is not allowed."""
    import ctypes
    import fcntl
    import socket
    import struct

    new_network, up_and_running, set_flags = 0x40000000, 0x1 | 0x40, 0x8914
    if sys.platform != "linux" or ctypes.CDLL(None).unshare(new_network) != 0:
        return False
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
        fcntl.ioctl(any_socket, set_flags, struct.pack("16sh14x", b"lo", up_and_running))
    return True


def say(text: str) -> None:
    print(f"tests: {text}", file=sys.stderr, flush=True)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        say("interrupted; the same command goes on")
        sys.exit(130)
