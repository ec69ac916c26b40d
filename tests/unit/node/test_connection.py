"""Pinned, strong, bounded: what the connection does with servers that are not what they should be."""
from __future__ import annotations

import resource
import socket
import threading
import time
from collections.abc import Callable, Iterator

import paramiko
import pytest

from orchestrator.domain.hostkey import fingerprint
from orchestrator.domain.lease import Access
from orchestrator.errors import HostKeyChanged, Unreachable
from orchestrator.node import own_host
from orchestrator.node.connection import Dialer, Pace, Unreached
from orchestrator.node.transport import SafeTransport
from tests.fakes.labnode import Renter, lab_node, new_key
from tests.fakes.rogue import RawServer, Rogue

PACE = Pace(connect=5, banner=2, auth=10, channel=10, silence=3, probe=0.5)
pytestmark = pytest.mark.sealed


def dialer(port: int, *host_keys: str, identity: str = "", pace: Pace = PACE) -> Dialer:
    access = Access("127.0.0.1", port, "renter", host_keys, "signed", identity)
    return Dialer(access, new_key()[0], threading.Semaphore(4), pace)


@pytest.fixture
def rogue() -> Iterator[Rogue]:
    server = Rogue()
    yield server
    server.close()


def test_pinned_key_is_accepted_and_the_cipher_is_strong(rogue: Rogue) -> None:
    transport = dialer(rogue.port, rogue.line).dial()
    assert transport.local_cipher == transport.remote_cipher == "aes128-gcm@openssh.com"
    assert "key" in rogue.heard
    transport.close()


def test_swapped_key_ends_it_before_anything_of_ours(rogue: Rogue) -> None:
    other = paramiko.ECDSAKey.generate(bits=256)
    with pytest.raises(HostKeyChanged) as changed:
        dialer(rogue.port, f"{other.get_name()} {other.get_base64()}").dial()
    assert rogue.heard == []
    assert fingerprint(rogue.line) in str(changed.value)
    assert fingerprint(f"{other.get_name()} {other.get_base64()}") in str(changed.value)


def test_key_of_another_type_is_a_changed_key(rogue: Rogue) -> None:
    with pytest.raises(HostKeyChanged):
        dialer(rogue.port, new_key()[1]).dial()
    assert rogue.heard == []


@pytest.mark.parametrize("known", [True, False], ids=["not let in", "changed key"])
def test_an_attempt_that_failed_leaves_no_connection_open(known: bool) -> None:
    server = Rogue(let_in=False)
    try:
        door = dialer(server.port, server.line if known else new_key()[1])
        for _ in range(3):
            with pytest.raises((Unreached, HostKeyChanged)):
                door.dial()
        deadline = time.monotonic() + 5
        while (left := [one for one in server.transports if one.is_active()]) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert left == [] and len(server.transports) == 3
    finally:
        server.close()


def test_one_of_several_pins_is_enough(rogue: Rogue) -> None:
    dialer(rogue.port, new_key()[1], rogue.line).dial().close()


def test_key_that_comes_late_is_only_unreached_this_time() -> None:
    server = Rogue(let_in=False)
    try:
        door = dialer(server.port, server.line)
        with pytest.raises(Unreached) as no:
            door.dial()
        assert no.value.refused
        server.let_in = True
        door.dial().close()
    finally:
        server.close()


@pytest.mark.parametrize("offers", [
    {"ciphers": ("aes128-cbc", "3des-cbc")}, {"ciphers": ("aes128-ctr",), "digests": ("hmac-sha1", "hmac-md5")},
    {"kex": ("diffie-hellman-group14-sha256",)}], ids=["cbc", "sha1", "small group"])
def test_weak_algorithms_are_refused(offers: dict) -> None:
    server = Rogue(offers=offers)
    try:
        with pytest.raises(Unreached, match="strong enough"):
            dialer(server.port, server.line).dial()
        assert server.heard == []
    finally:
        server.close()


def endless_line(near: socket.socket) -> None:
    while True:
        near.sendall(b"x" * 1024)


def endless_lines(near: socket.socket) -> None:
    while True:
        near.sendall(b"welcome to our server\r\n" * 40)


def drip(near: socket.socket) -> None:
    while True:
        near.sendall(b"x")
        time.sleep(0.2)


def giant_packet(near: socket.socket) -> None:
    near.sendall(b"SSH-2.0-rogue\r\n" + b"\xff\xff\xff\xf0" + b"\x00" * 12)
    while True:
        near.sendall(b"\x00" * 65536)


def silent(near: socket.socket) -> None:
    time.sleep(30)


@pytest.mark.parametrize("behaviour", [endless_line, endless_lines, drip, giant_packet, silent])
def test_servers_without_end_are_left_soon_and_cheaply(behaviour) -> None:  # type: ignore[no-untyped-def]
    server = RawServer(behaviour)
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    try:
        with pytest.raises(Unreached):
            dialer(server.port, new_key()[1]).dial()
    finally:
        server.close()
    assert time.monotonic() - started < 20
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as held:
        port = held.getsockname()[1]
    with pytest.raises(Unreached) as no:
        dialer(port, new_key()[1]).dial()
    assert str(no.value) == "no connection to the node: ECONNREFUSED"     # no address: this goes into the journal


ESCAPE = b"\x1b]0;you are had\x07"


def says(words: bytes) -> Callable[[socket.socket], None]:
    def behave(near: socket.socket) -> None:
        near.sendall(words)
        time.sleep(0.5)
    return behave


@pytest.mark.parametrize("words", [b"SSH-" + ESCAPE + b"\r\n", b"SSH-9.9-" + ESCAPE + b"\r\n", b"HTTP/1.1 " + ESCAPE * 40,
                                   b"SSH-2.0-x\r\n\x00\x00\x00\x0c\x04\x01" + ESCAPE])
def test_words_of_a_server_are_in_no_message(words: bytes) -> None:
    """The library quotes what it cannot read."""
    server = RawServer(says(words))
    with pytest.raises(Unreached) as no:
        dialer(server.port, new_key()[1]).dial()
    with pytest.raises(Unreachable) as shown:
        own_host.shown_key("127.0.0.1", server.port)
    server.close()
    for message in (str(no.value), str(shown.value)):
        assert message.isascii() and message.isprintable()
    assert "had" not in str(no.value) and "127.0.0.1" not in str(no.value)


@pytest.mark.parametrize("kind", ["auth-agent@openssh.com", "x11", "forwarded-tcpip", "direct-tcpip", "session"])
def test_server_that_opens_channels_to_us_is_refused(rogue: Rogue, kind: str) -> None:
    transport = dialer(rogue.port, rogue.line).dial()
    address = ("127.0.0.1", 1) if kind != "session" else None
    with pytest.raises(paramiko.ChannelException):
        rogue.transports[0].open_channel(kind, dest_addr=address, src_addr=address, timeout=10)
    transport.close()


def test_person_s_ssh_set_up_is_not_read(rogue: Rogue, tmp_path, monkeypatch) -> None:  # type: ignore[no-untyped-def]
    """A config that points elsewhere, keys in ~/.ssh and an agent: none of them plays a part."""
    (tmp_path / ".ssh").mkdir()
    config = "Host *\n HostName 127.0.0.2\n Port 1\n ForwardAgent yes\n ProxyCommand false\n"
    (tmp_path / ".ssh" / "config").write_text(config)
    (tmp_path / ".ssh" / "id_ed25519").write_bytes(new_key()[0])
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SSH_AUTH_SOCK", str(tmp_path / "agent"))
    dialer(rogue.port, rogue.line).dial().close()
    assert rogue.heard.count("key") <= 2                 # the one key of the lease: asked, then signed


def test_handshakes_are_limited() -> None:
    """Of ten at once never more than four are being shaken."""
    now, most, lock = 0, 0, threading.Lock()

    def slow(near: socket.socket) -> None:
        nonlocal now, most
        with lock:
            now, most = now + 1, max(most, now + 1)
        time.sleep(0.2)
        with lock:
            now -= 1
    server = RawServer(slow)
    door = dialer(server.port, new_key()[1])

    def fail() -> None:
        with pytest.raises(Unreached):
            door.dial()
    threads = [threading.Thread(target=fail) for _ in range(10)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(30)
    server.close()
    assert 1 < most <= 4


# ---- against a real sshd ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def renter() -> Iterator[Renter]:
    with lab_node() as renter:
        yield renter


def connected(renter: Renter, port: int | None = None, pace: Pace = PACE) -> SafeTransport:
    return Dialer(renter.access(port), renter.key, threading.Semaphore(4), pace).dial()


def read_all(channel: paramiko.Channel) -> bytes:
    data = bytearray()
    while chunk := channel.recv(1 << 18):
        data += chunk
    return bytes(data)


def test_real_sshd_takes_our_algorithms(renter: Renter) -> None:
    transport = connected(renter)
    assert transport.sound and "gcm" in transport.local_cipher
    assert read_all(transport.open_exec("printf hello", 10)) == b"hello"
    transport.close()


def test_large_answer_and_large_question_are_linear(renter: Renter) -> None:
    from orchestrator.node.transport import send
    transport, started = connected(renter), time.process_time()
    assert len(read_all(transport.open_exec("head -c 67108864 /dev/zero", 30))) == 64 << 20
    channel = transport.open_exec("wc -c", 30)
    send(channel, bytes(64 << 20))
    channel.shutdown_write()
    assert read_all(channel).strip() == b"67108864"
    transport.close()
    assert time.process_time() - started < 20            # the library's own sendall takes 65 s for half of it
