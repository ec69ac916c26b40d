"""The lab's chain: one process on loopback that behaves like a chain, anvil where it can be had, py-evm otherwise.

    start(folder, port)    the chain of this folder, with everything that happened on it before
    running(folder)        the one that runs already, if it answers

Its chain id is 31337, never a real one, so nothing that is signed here is valid anywhere else. What the chain knows
stays in `folder`; anvil itself, if it had to be fetched, in `tools`, checked against a pinned digest.
"""
from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from ..errors import Refused
from . import anvil

CHAIN_ID = 31337
PATIENCE_S = 30
_PACKAGES = Path(__file__).resolve().parents[2]      # so that the child finds this package wherever it is started
_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True, slots=True)
class ChainProcess:
    pid: int
    url: str
    kind: str                            # anvil | py-evm


def start(folder: Path, port: int, kind: str = "auto", tools: Path | None = None) -> ChainProcess:
    """Start the chain and wait until it answers. `kind`: auto, anvil or py-evm. Refused: it does not come up.

    A folder's first chain decides its kind for good, since the two keep their state in different files.
    """
    found = running(folder)
    if found is not None:
        return found
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    _must_be_free(port)
    kind, program = _choose(folder, kind, tools or folder / "tools")
    command = _anvil(program, folder, port) if program else _py_evm(folder, port)
    log = folder / "chain.log"
    with log.open("ab") as out:
        child = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True,
                                 env={**os.environ, "PYTHONPATH": str(_PACKAGES)})
    chain = ChainProcess(child.pid, f"http://127.0.0.1:{port}", kind)
    _children[child.pid] = child
    try:
        _wait_for(child, chain.url, log)
        _never_back_in_time(chain.url)
    except BaseException:
        stop(chain)
        raise
    (folder / "chain.json").write_text(json.dumps(asdict(chain)), encoding="utf-8")
    return chain


def running(folder: Path) -> ChainProcess | None:
    """The chain that was started for this folder, if its process lives and its address answers as a lab's chain."""
    try:
        chain = ChainProcess(**json.loads((folder / "chain.json").read_text(encoding="utf-8")))
    except (OSError, ValueError, TypeError):
        return None
    return chain if _lives(chain.pid) and _answers(chain.url) else None


def stop(chain: ChainProcess) -> None:
    """End it so that its state is on disk. Gone already is success. For a chain of `start` or `running` only."""
    child = _children.pop(chain.pid, None)
    for word, patience in ((signal.SIGTERM, 15), (signal.SIGKILL, 5)):
        with contextlib.suppress(ProcessLookupError):
            os.kill(chain.pid, word)
        if _ended(chain.pid, child, patience):
            return


_children: dict[int, subprocess.Popen[bytes]] = {}   # ours, so that they can be reaped


def call(url: str, method: str, *parameters: Any) -> Any:
    """One JSON-RPC call to a lab's chain. OSError if it does not answer, ValueError if it answers with an error."""
    question = {"jsonrpc": "2.0", "id": 1, "method": method, "params": list(parameters)}
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(url, json.dumps(question).encode(), headers)  # noqa: S310 why: our own loopback url
    with _NO_PROXY.open(request, timeout=10) as answer:
        found = json.loads(answer.read(4 * 1024 * 1024))
    if "error" in found:
        raise ValueError(f"{method}: {found['error'].get('message')}")
    return found["result"]


# ---- which one ----------------------------------------------------------------------------------------------


def _choose(folder: Path, kind: str, tools: Path) -> tuple[str, Path | None]:
    before = folder / "kind"
    if before.exists():
        kind = before.read_text(encoding="ascii").strip()
    program = anvil.find(tools) if kind in ("auto", "anvil") else None
    if kind == "anvil" and program is None:
        raise Refused("no anvil could be found or fetched",
                      hint="install Foundry, or set SEALTUNE_ANVIL to the program's path")
    chosen = "anvil" if program else "py-evm"
    before.write_text(chosen, encoding="ascii")
    return chosen, program


def _anvil(program: Path, folder: Path, port: int) -> list[str]:
    return [str(program), "--host", "127.0.0.1", "--port", str(port), "--chain-id", str(CHAIN_ID),
            "--hardfork", "prague", "--slots-in-an-epoch", "1", "--accounts", "0", "--no-cors",
            "--state", str(folder / "anvil.json"), "--state-interval", "2", "--quiet"]


def _py_evm(folder: Path, port: int) -> list[str]:
    return [sys.executable, "-m", "orchestrator.lab.pyevm_chain", str(folder / "pyevm.blocks"), str(port)]


# ---- up and down --------------------------------------------------------------------------------------------


def _must_be_free(port: int) -> None:
    """Or somebody else's chain would answer in place of ours."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            raise Refused(f"port {port} is in use", hint="stop what listens there, or choose another port") from None


def _wait_for(child: subprocess.Popen[bytes], url: str, log: Path) -> None:
    deadline = time.monotonic() + PATIENCE_S
    while not _answers(url) or child.poll() is not None:
        if child.poll() is not None or time.monotonic() > deadline:
            raise Refused(f"the lab's chain did not come up at {url}", hint=f"see {log}")
        time.sleep(0.05)


def _answers(url: str) -> bool:
    try:
        return int(call(url, "eth_chainId"), 16) == CHAIN_ID
    except (OSError, ValueError, KeyError, TypeError):
        return False


def _never_back_in_time(url: str) -> None:
    """anvil forgets when it ends that its clock was moved ahead. Its next block must not be older than its last."""
    newest, following = (_time_of(url, at) for at in ("latest", "pending"))
    if following <= newest:
        call(url, "evm_increaseTime", newest - following + 1)


def _time_of(url: str, at: str) -> int:
    return int(call(url, "eth_getBlockByNumber", at, False)["timestamp"], 16)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def _ended(pid: int, child: subprocess.Popen[bytes] | None, patience: int) -> bool:
    deadline = time.monotonic() + patience
    while time.monotonic() < deadline:
        if child.poll() is not None if child else not _lives(pid):
            return True
        time.sleep(0.02)
    return False
