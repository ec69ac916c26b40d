"""The own server's door: who is not let in learns it at once, with the user, the keys and what to do."""
from __future__ import annotations

import subprocess
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.evidence import NO_GPU
from orchestrator.domain.lease import Access
from orchestrator.errors import BadInput, HostKeyChanged, Refused, Unreachable
from orchestrator.lab.node import NodeSpec
from orchestrator.node import own_host
from orchestrator.node.connection import Pace
from orchestrator.node.door import hardware, look_in
from orchestrator.node.payloads import Payloads
from orchestrator.node.probes.rules import Views
from orchestrator.node.probes.smi import Gpu, Smi
from orchestrator.node.probes.system import Python
from tests.fakes.labnode import Renter, lab_node, new_key
from tests.fakes.rogue import RawServer, Rogue

PACE = Pace(connect=5, banner=1, auth=5, channel=5, silence=3, probe=0.5)
ARCHIVE = Payloads().archive
pytestmark = pytest.mark.sealed


@pytest.fixture
def closed() -> Iterator[Rogue]:
    server = Rogue(let_in=False)
    yield server
    server.close()


def key_file(folder: Path, kind: str = "ed25519", passphrase: str = "") -> Path:
    path = folder / f"id_{kind}"
    subprocess.run(["ssh-keygen", "-q", "-t", kind, "-N", passphrase, "-C", "me@home", "-f", str(path)], check=True)
    return path


def shown(path: Path) -> str:
    words = subprocess.run(["ssh-keygen", "-lf", str(path)], check=True, capture_output=True, text=True).stdout
    return words.split()[1]


def at(server: Rogue, identity: str) -> Access:
    return Access("127.0.0.1", server.port, "me", (server.line,), "fingerprint", identity)


@pytest.mark.parametrize("kind", ["ed25519", "ecdsa", "rsa"])
def test_a_refused_login_names_user_and_key_at_once(closed: Rogue, tmp_path: Path, kind: str) -> None:
    key, began = key_file(tmp_path, kind), time.monotonic()
    with pytest.raises(Refused, match="does not let me in") as no:
        look_in(at(closed, str(key)), ARCHIVE, PACE)
    assert f"offered: {key} ({shown(key)})" in str(no.value)
    assert "authorized_keys" in str(no.value.hint)
    assert "no ssh" not in str(no.value)
    assert time.monotonic() - began < 5
    assert len(closed.transports) == 1, "it was tried again"


def test_without_any_key_it_says_so(closed: Rogue, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    with pytest.raises(Refused, match=r"offered: no key at all \(no agent holds one\)"):
        look_in(at(closed, "agent"), ARCHIVE, PACE)


def test_a_key_with_a_passphrase_is_for_the_agent(closed: Rogue, tmp_path: Path) -> None:
    key = key_file(tmp_path, passphrase="not empty")
    with pytest.raises(Refused, match="the key file has a passphrase, so an ssh agent must hold the key"):
        look_in(at(closed, str(key)), ARCHIVE, PACE)


def test_a_key_file_that_cannot_be_read_is_the_persons_to_mend(closed: Rogue, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="is a directory"):
        look_in(at(closed, str(tmp_path)), ARCHIVE, PACE)
    assert closed.heard == []


def test_another_host_key_is_no_refused_login(closed: Rogue, tmp_path: Path) -> None:
    other = Access("127.0.0.1", closed.port, "me", (new_key()[1],), "fingerprint", str(key_file(tmp_path)))
    with pytest.raises(HostKeyChanged):
        look_in(other, ARCHIVE, PACE)
    assert closed.heard == []


def test_a_server_that_speaks_no_ssh_is_unreachable(tmp_path: Path) -> None:
    server = RawServer(lambda near: near.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n"))
    try:
        with pytest.raises(Unreachable) as away:
            look_in(Access("127.0.0.1", server.port, "me", (new_key()[1],), "fingerprint", str(key_file(tmp_path))),
                    ARCHIVE, PACE)
    finally:
        server.close()
    assert f"127.0.0.1:{server.port}" in str(away.value)
    assert str(away.value.hint).startswith("try: ssh -p")


def test_let_in_it_says_what_stands_there_and_leaves_nothing(tmp_path: Path) -> None:
    with lab_node(NodeSpec(tmp_path / "node", gpu=None)) as renter:
        key = let_in(renter, tmp_path)
        node = renter.node
        access = Access(node.host, node.port, node.user, node.host_keys, "fingerprint", str(key))
        assert look_in(access, ARCHIVE) == NO_GPU
        assert [path for path in Path(node.home).rglob("*") if path.name.startswith(".sealtune")] == []


def let_in(renter: Renter, folder: Path) -> Path:
    key = key_file(folder)
    with Path(renter.node.authorized_keys).open("a") as keys:
        keys.write(key.with_suffix(".pub").read_text())
    return key


def test_gpus_are_named() -> None:
    gpu = Gpu("NVIDIA H200", "GPU-1", "2335", "", 143_771, 0, False, False, 0, 1000)
    views = Views(Smi("580.1", "13.0", (gpu,)), "", Python("3.11", True), {})
    assert hardware(views) == "NVIDIA H200, 140 GiB"


# ---- which key -------------------------------------------------------------------------------------------------


def test_without_an_agent_the_usual_key_is_taken(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = key_file(tmp_path)
    assert own_host.address("gpu.example.net", None, "me", None, tmp_path / "config").identity == str(key)


def test_a_key_with_a_passphrase_is_left_to_the_agent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    key = key_file(tmp_path, passphrase="not empty")
    (tmp_path / "config").write_text(f"Host box\n  HostName gpu.example.net\n  IdentityFile {key}\n")
    found = own_host.address("box", None, None, None, tmp_path / "config")
    assert (found.host, found.identity) == ("gpu.example.net", "agent")
