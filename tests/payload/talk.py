"""An agent as the laptop meets it: the real archive through the real loader, frames over pipes, a home of its own."""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from orchestrator.domain.document import sha256
from orchestrator.node import agent_loader, payloads
from orchestrator.node.frames import BODY_MAX_UP, PROGRESS, REFUSED, REPLY, Frame, Verb, decode, encode
from remote_payload import public
from remote_payload.overwrite import memory_scratch
from remote_payload.workspace import Workspace

LEASE = "ab" * 32
OTHER_LEASE = "cd" * 32
PART = 8 * 1024 * 1024
DEADLINE = 60.0
NODE_PYTHON = os.environ.get("SEALTUNE_NODE_PYTHON", sys.executable)   # the suites may run on an older one too
LOCK, UV_LOCK = b"# a lock of nothing\n", b"# a lock of no uv\n"


class Refused(AssertionError):
    """The agent refused; `code` and `detail` as it said."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}")
        self.code, self.detail = code, detail


class Ended(AssertionError):
    """The agent ended the channel."""


class Agent:
    """One connection. `python`: the interpreter that the node would have."""

    def __init__(self, home: Path, archive: bytes, python: str = NODE_PYTHON,
                 environment: Mapping[str, str] | None = None) -> None:
        words = {"HOME": str(home), "PATH": os.environ["PATH"], **(environment or {})}
        command = agent_loader.command(archive).replace("exec python3", f"exec {python}", 1)
        self.process = subprocess.Popen(["/bin/sh", "-c", command], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                        stderr=subprocess.DEVNULL, env=words, cwd=home, bufsize=0)
        self.progress: list[Mapping[str, Any]] = []
        self.send(agent_loader.preamble(archive))

    def send(self, data: bytes) -> None:
        assert self.process.stdin is not None
        view = memoryview(data)
        while view:
            view = view[os.write(self.process.stdin.fileno(), view):]

    def _take(self, size: int) -> bytes:
        assert self.process.stdout is not None
        got, until = b"", time.monotonic() + DEADLINE
        while len(got) < size:
            ready, _, _ = select.select([self.process.stdout], [], [], max(0.0, until - time.monotonic()))
            chunk = os.read(self.process.stdout.fileno(), size - len(got)) if ready else b""
            if not chunk:
                raise Ended("the agent ended the channel" if ready else "the agent is silent")
            got += chunk
        return got

    def ask(self, verb: str, header: Mapping[str, Any] | None = None, body: bytes = b"") -> Frame:
        """The reply. Raises Refused or Ended."""
        code = Verb[verb.upper()]
        self.send(encode(Frame(code, header or {}, body), BODY_MAX_UP))
        return self.answer(code)

    def answer(self, code: int) -> Frame:
        while True:
            frame = decode(self._take)
            if frame.type == PROGRESS:
                self.progress.append(frame.header)
                continue
            if frame.type == REFUSED:
                raise Refused(frame.header["code"], frame.header["detail"])
            assert frame.type == code + REPLY
            return frame

    def kill(self) -> None:
        self.process.kill()
        self.close()

    def close(self) -> int:
        for stream in (self.process.stdin, self.process.stdout):
            if stream is not None:
                with contextlib.suppress(OSError):
                    stream.close()
        return self.process.wait(DEADLINE)


class Node:
    """One node: a home, its agents, its keepers. `end` leaves no process behind."""

    def __init__(self, home: Path, lease: str = LEASE, python: str = NODE_PYTHON,
                 environment: Mapping[str, str] | None = None) -> None:
        self.home, self.lease, self._python, self._environment = home, lease, python, environment
        self.archive = payloads.Payloads().archive
        self.place = Workspace(home, lease)
        self._began = time.time()
        self._agents: list[Agent] = []
        self._keepers: set[int] = set()

    def connect(self, hello: bool = True, lease: str | None = None) -> Agent:
        agent = Agent(self.home, self.archive, self._python, self._environment)
        self._agents.append(agent)
        if hello:
            agent.ask("hello", {"protocol": 1, "lease": lease or self.lease})
        return agent

    def armed(self, seconds: int = 600, silence: int = 600, self_end: tuple[str, ...] = ()) -> Agent:
        agent = self.connect()
        agent.ask("arm", {"seconds": seconds, "silence": silence, "self_end": list(self_end)})
        self.keeper()
        return agent

    def keeper(self) -> int:
        """The keeper's process id, by its own note."""
        pid = int(json.loads((self.place.private / "keeper.json").read_text())["pid"])
        self._keepers.add(pid)
        return pid

    def keeper_seen(self) -> int:
        """The keeper that was met, when its note is gone."""
        (pid,) = self._keepers
        return pid

    def put(self, agent: Agent, name: str, data: bytes) -> str:
        for index in range(max(1, -(-len(data) // PART))):
            part = data[index * PART:(index + 1) * PART]
            agent.ask("put", {"name": name, "index": index, "sha256": sha256(part)}, part)
        reply = agent.ask("close", {"name": name, "sha256": sha256(data), "size": len(data)})
        return str(reply.header["sha256"])

    def prepare_environment(self, python: str = sys.executable) -> Path:
        """An environment as a lease before this one could have left it; its Python has what the rehearsal needs."""
        folder = self.place.environment(sha256(LOCK))
        packages = folder / "lib" / "python3.11" / "site-packages"
        info = packages / "nothing-1.dist-info"
        for place in (self.place.root, self.place.public):
            place.mkdir(mode=0o700, exist_ok=True)
        info.mkdir(parents=True)
        (folder / "bin").mkdir()
        (packages / "nothing.py").write_text("")
        (info / "RECORD").write_text("nothing.py,sha256=47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU,0\n")
        (folder / "bin" / "python").write_text(f'#!/bin/sh\nexec {python} "$@"\n')
        (folder / "bin" / "python").chmod(0o755)
        digest = public.environment_digest(public.recorded(packages))
        (folder / public.MARK).write_text(json.dumps(
            {"schema": public.ENVIRONMENT_SCHEMA, "lock": sha256(LOCK), "packages": 1, "environment": digest}))
        return folder

    def install(self, agent: Agent, lock: bytes = LOCK, uv_lock: bytes = UV_LOCK) -> Mapping[str, Any]:
        payload = self.put(agent, "payload.zip", self.archive)
        header = {"payload": payload, "lock": sha256(lock), "uv_lock": sha256(uv_lock), "variant": "rehearsal",
                  "lock_bytes": len(lock)}
        return agent.ask("install", header, lock + uv_lock).header

    def end(self) -> None:
        for agent in self._agents:
            agent.kill()
        for pid in self._keepers:
            with contextlib.suppress(OSError):
                os.kill(pid, signal.SIGKILL)
                until(lambda pid=pid: not lives(pid))
        for folder in memory_scratch(self._began):
            shutil.rmtree(folder, ignore_errors=True)


@contextlib.contextmanager
def a_node(home: Path, **rest: Any) -> Iterator[Node]:
    home.mkdir(exist_ok=True)
    node = Node(home, **rest)
    try:
        yield node
    finally:
        node.end()


def until(true: Any, seconds: float = DEADLINE) -> None:
    """Waits for something to become true; says what it waited for when it does not."""
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end, "it did not come about in time"
        time.sleep(0.05)


def lives(pid: int) -> bool:
    """A process that runs; one that has ended and was not buried does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def digest(data: bytes) -> str:
    return "sha256:" + hashlib.sha256(data).hexdigest()
