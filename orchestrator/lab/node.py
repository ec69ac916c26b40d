"""The lab's node: a real OpenSSH server on loopback with a sandbox home, as a stranger's machine would look.

    start(NodeSpec(folder)) → NodeProcess     running(folder)     lock_out(folder)     stop(folder)
    python -m orchestrator.lab.node lock-out FOLDER        what the provider runs when a lease ends

As root every session drops to an unprivileged uid that exists for this node alone; as an ordinary user sessions stay
that user. Without an sshd binary an asyncssh server stands in (`kind` says so). It must not touch the machine's own ssh
server, listen anywhere but on loopback, or write outside its folder (as root: and a folder the uid can reach).
"""
from __future__ import annotations

import getpass
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from ..errors import Refused
from . import reaper, sandbox, sshd
from .simulated_smi import SimulatedGpu, write

STATE = "node.json"
STARTS_WITHIN = 20
PASSED_ON = ("PIP_", "UV_", "SSL_CERT_")
NOT_PASSED_ON = ("UV_CACHE_DIR", "UV_PYTHON", "UV_TOOL", "UV_PROJECT", "UV_PUBLISH", "PIP_CACHE_DIR", "PIP_TARGET",
                 "PIP_PREFIX", "PIP_USER", "PIP_REQUIRE_VIRTUALENV", "PIP_LOG", "PIP_PYTHON")


@dataclass(frozen=True, slots=True)
class NodeSpec:
    """`folder`: this node's own. `port` 0: any free one. `gpu` None: a node without a GPU."""

    folder: Path
    port: int = 0
    environment: Mapping[str, str] = field(default_factory=dict)
    gpu: SimulatedGpu | None = field(default_factory=SimulatedGpu)


@dataclass(frozen=True, slots=True)
class NodeProcess:
    """A node that runs. `kind`: "sshd" | "asyncssh". `uid` None: sessions are the calling user's."""

    pid: int
    host: str
    port: int
    user: str
    host_keys: tuple[str, ...]
    kind: str
    folder: str
    home: str                            # the sandbox
    authorized_keys: str                 # whoever is let in, one line a key; the provider writes it
    python: str
    uid: int | None = None


def passed_on(environment: Mapping[str, str]) -> dict[str, str]:
    """What a package installer needs to know of this machine: where packages come from, and nothing else."""
    return {k: v for k, v in environment.items() if k.startswith(PASSED_ON) and not k.startswith(NOT_PASSED_ON)}


def start(spec: NodeSpec) -> NodeProcess:
    """Start it, or find it running. Refused with a hint when this machine cannot carry it."""
    if known := running(spec.folder):
        return known
    spec.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    folder = spec.folder.resolve()
    room = sandbox.prepare(folder)
    keys = folder / "authorized_keys"
    keys.touch(mode=0o600)
    tools = room.base / "bin"
    sandbox.lay_out_tools(tools, room)
    if spec.gpu:
        write(tools, spec.gpu)
    user, port = getpass.getuser() if room.uid is None else "root", spec.port or free_port()
    _executable(folder / "session", sshd.wrapper(room.home, _environment(spec, room, tools), room.uid))
    public = sshd.host_key(folder)
    kind, command = _server(folder, port, user, room.uid is not None)
    pid = _launch(command, folder)
    node = NodeProcess(pid, "127.0.0.1", port, user, (public,), kind, str(folder), str(room.home), str(keys),
                       str(room.python), room.uid)
    _answering(node)
    (folder / STATE).write_text(json.dumps(asdict(node)))
    return node


def _environment(spec: NodeSpec, room: sandbox.Sandbox, tools: Path) -> dict[str, str]:
    return {"HOME": str(room.home), "USER": "renter", "LOGNAME": "renter", "LANG": "C.UTF-8",
            "PATH": os.pathsep.join((str(tools), *os.defpath.split(os.pathsep))), **spec.environment}


def _server(folder: Path, port: int, user: str, root: bool) -> tuple[str, list[str]]:
    """("sshd" or "asyncssh", its command line)."""
    binary = sshd.find()
    if binary is None:
        settings = {"port": port, "user": user, "folder": str(folder)}
        (folder / "asyncssh.json").write_text(json.dumps(settings))
        return "asyncssh", [sys.executable, "-m", "orchestrator.lab.asyncssh_node", str(folder / "asyncssh.json")]
    config = folder / "sshd_config"
    config.write_text(sshd.config(folder, port, user, pam=root and sshd.root_is_locked()))
    sshd.prepare(binary, config, root)
    return "sshd", [binary, "-D", "-e", "-f", str(config)]


def _launch(command: list[str], folder: Path) -> int:
    """In a session of its own, so that a terminal's Ctrl-C does not reach it."""
    here = str(Path(__file__).resolve().parents[2])
    with (folder / "node.log").open("ab") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "orchestrator.lab.reaper", "--", *command], stdin=subprocess.DEVNULL, stdout=log,
            stderr=log, cwd=here, start_new_session=True)
    _children[process.pid] = process
    return process.pid


_children: dict[int, subprocess.Popen[bytes]] = {}        # those this process must bury


def _answering(node: NodeProcess) -> None:
    deadline = time.monotonic() + STARTS_WITHIN
    while time.monotonic() < deadline:
        if not reaper.alive(node.pid):
            break
        try:
            with socket.create_connection((node.host, node.port), timeout=2) as line:
                if line.recv(4) == b"SSH-":
                    return
        except OSError:
            time.sleep(0.05)
    words = (Path(node.folder) / "node.log").read_text(errors="replace")[-300:].strip()
    _end(node)
    raise Refused(f"the lab's node did not start: {words}", hint="sealtune lab down")


def running(folder: Path) -> NodeProcess | None:
    """The node of this folder, if it runs."""
    try:
        tree = json.loads((folder / STATE).read_text())
        node = NodeProcess(**{**tree, "host_keys": tuple(tree["host_keys"])})
    except (OSError, ValueError, TypeError, KeyError):
        return None
    return node if reaper.alive(node.pid) and _is_ours(node.pid) else None


def _is_ours(pid: int) -> bool:
    """Not some other process that was given the same number later."""
    try:
        return b"orchestrator.lab.reaper" in (Path("/proc") / str(pid) / "cmdline").read_bytes()
    except OSError:
        return False


def lock_out(folder: Path) -> None:
    """End every session of the renter and all that the sessions left running. Refused when something survives."""
    node = running(folder)
    if node and not reaper.kill_all(_of_renter(node), lambda: _of_renter(node)):
        raise Refused("processes of the renter survive on the lab's node")


def _of_renter(node: NodeProcess) -> list[int]:
    """All processes below the server but the server itself; as root also everything of the node's own uid."""
    below = reaper.descendants(node.pid)
    return sorted({*below[1:], *(reaper.of_user(node.uid) if node.uid is not None else ())})


def stop(folder: Path) -> None:
    """End the server and everything it ever started. Stopped already: nothing to do."""
    if node := running(folder):
        _end(node)
    (folder / STATE).unlink(missing_ok=True)


def _end(node: NodeProcess) -> None:
    if reaper.alive(node.pid):
        os.kill(node.pid, signal.SIGTERM)
        deadline = time.monotonic() + 15
        while reaper.alive(node.pid) and time.monotonic() < deadline:
            time.sleep(0.05)
        left = [*reaper.descendants(node.pid), node.pid] if reaper.alive(node.pid) else []
        reaper.kill(left)
    if node.uid is not None:
        reaper.kill_all(reaper.of_user(node.uid), lambda: reaper.of_user(node.uid or -1))
    if child := _children.pop(node.pid, None):
        child.wait(10)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _executable(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def main(argv: list[str]) -> int:
    if len(argv) != 3 or argv[1] != "lock-out":
        sys.stderr.write("usage: python -m orchestrator.lab.node lock-out FOLDER\n")
        return 2
    lock_out(Path(argv[2]))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv))
