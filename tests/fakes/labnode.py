"""A lab node for tests: a renter with a key, evidence in memory, a clock, and a line that can be cut."""
from __future__ import annotations

import contextlib
import hashlib
import os
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from orchestrator.domain.lease import Access
from orchestrator.domain.names import Digest, Instant, LeaseKey
from orchestrator.lab import node as lab
from orchestrator.lab import sandbox
from orchestrator.node.driver import Nodes, SshNode
from orchestrator.node.payloads import Payloads


def new_key() -> tuple[bytes, str]:
    """(OpenSSH PEM, public line) of a fresh ed25519 key."""
    from cryptography.hazmat.primitives import serialization as ser
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    key = Ed25519PrivateKey.generate()
    private = key.private_bytes(ser.Encoding.PEM, ser.PrivateFormat.OpenSSH, ser.NoEncryption())
    return private, key.public_key().public_bytes(ser.Encoding.OpenSSH, ser.PublicFormat.OpenSSH).decode()


class Shelf:
    """Port Evidence in memory."""

    def __init__(self) -> None:
        self.documents: dict[str, bytes] = {}

    def keep(self, document: bytes) -> Digest:
        digest = Digest("sha256:" + hashlib.sha256(document).hexdigest())
        self.documents[digest] = document
        return digest

    def read(self, digest: Digest) -> bytes:
        return self.documents[digest]


class WallClock:
    def now(self) -> Instant:
        return Instant(int(time.time()))

    def sleep(self, seconds: int) -> None:
        time.sleep(seconds)


@dataclass
class Renter:
    """Somebody who was let in at a lab node, and sessions made in that name."""

    node: lab.NodeProcess
    key: bytes
    evidence: Shelf = field(default_factory=Shelf)
    payloads: Payloads = field(default_factory=Payloads)

    def access(self, port: int | None = None) -> Access:
        return Access(self.node.host, port or self.node.port, self.node.user, self.node.host_keys, "signed")

    def nodes(self) -> Nodes:
        return Nodes(self.payloads.archive, self.payloads.locks, self.evidence, WallClock())

    @contextlib.contextmanager
    def session(self, lease: str, patience: int = 20, port: int | None = None) -> Iterator[SshNode]:
        nodes = self.nodes()
        try:
            yield nodes.at(self.access(port), self.key, LeaseKey(lease), patience)
        finally:
            nodes.close()


@contextlib.contextmanager
def lab_node(spec: lab.NodeSpec | None = None) -> Iterator[Renter]:
    """A running lab node that has let one renter in; nothing of it is left afterwards."""
    folder = Path(tempfile.mkdtemp(prefix="lab-node-"))
    spec = spec or lab.NodeSpec(folder, environment=lab.passed_on(os.environ))
    private, public = new_key()
    try:
        node = lab.start(spec)
        Path(node.authorized_keys).write_text(f"restrict {public}\n")
        yield Renter(node, private)
    finally:
        lab.stop(spec.folder)
        sandbox.remove(spec.folder)
        shutil.rmtree(folder, ignore_errors=True)


class Line:
    """A loopback line to a port that can be cut, made silent, or cut after so many bytes."""

    def __init__(self, port: int) -> None:
        self.target = port
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: list[socket.socket] = []
        self.silent = threading.Event()
        self.cut_after: list[int] = []   # bytes upwards after which a connection is cut; one entry a connection
        self.cuts = self.connections = self.up = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        self.cuts += 1
        for end in self._open:
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        self._open = []

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)          # wakes the thread that accepts
        self._listener.close()
        self.cut()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                far = socket.create_connection(("127.0.0.1", self.target))
                self.connections += 1
                self._open += [near, far]
                most = self.cut_after.pop(0) if self.cut_after else 0
                threading.Thread(target=self._pump, args=(near, far, most), daemon=True).start()
                threading.Thread(target=self._pump, args=(far, near, 0), daemon=True).start()

    def _pump(self, source: socket.socket, sink: socket.socket, most: int) -> None:
        passed = 0
        try:
            while data := source.recv(65536):
                while self.silent.is_set():          # swallowed: neither delivered nor refused
                    time.sleep(0.05)
                passed += len(data)
                if most and passed > most:
                    self.cuts += 1
                    break
                sink.sendall(data)
        except OSError:
            pass
        finally:
            for end in (source, sink):
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)
                end.close()
