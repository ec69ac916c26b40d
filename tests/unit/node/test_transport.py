"""The cures of transport.py, one by one."""
from __future__ import annotations

import resource
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import paramiko
import pytest
from paramiko.buffered_pipe import PipeTimeout

from orchestrator.domain.lease import Access
from orchestrator.lab import sshd
from orchestrator.lab.node import free_port
from orchestrator.node.connection import Dialer, Pace, Unreached
from orchestrator.node.transport import STUCK_SECONDS, DequePipe, SafeTransport, Unsafe, send
from tests.fakes.labnode import Line, lab_node, new_key
from tests.fakes.rogue import Rogue
from tests.unit.node.test_connection import connected, read_all

pytestmark = pytest.mark.noleak


# ---- the receive buffer -------------------------------------------------------------------------------------


def test_buffer_gives_back_what_it_was_fed_in_linear_time() -> None:
    pipe, started = DequePipe(most=64 << 20), time.process_time()
    for number in range(2048):
        pipe.feed(bytes([number % 256]) * 32768)
    assert len(pipe) == 64 << 20
    total = 0
    while len(pipe):
        total += len(pipe.read(30_000))
    assert total == 64 << 20
    assert time.process_time() - started < 5


def test_buffer_keeps_order_across_odd_pieces() -> None:
    pipe = DequePipe()
    for piece in (b"abc", b"", b"defgh", b"i"):
        pipe.feed(piece)
    assert [pipe.read(2), pipe.read(4), pipe.read(100)] == [b"ab", b"cdef", b"ghi"]


def test_buffer_waits_closes_and_signals() -> None:
    pipe, event = DequePipe(), threading.Event()
    pipe.set_event(event)
    with pytest.raises(PipeTimeout):
        pipe.read(1, timeout=0.01)
    threading.Timer(0.05, pipe.feed, args=(b"x",)).start()
    assert pipe.read(1, timeout=5) == b"x" and not event.is_set()
    pipe.feed(b"rest")
    assert event.is_set() and pipe.empty() == b"rest"
    pipe.close()
    assert event.is_set() and pipe.read(1, timeout=1) == b""


# ---- a server that goes beyond what it may ---------------------------------------------------------------------


def flood(channel: paramiko.Channel, into: str) -> None:
    """What an honest library does not let us do: more than the window, on a channel that nobody reads."""
    channel.out_window_size = 1 << 40
    while True:
        getattr(channel, into)(b"\x00" * 30_000)


def rogue_line(behaviour: Callable[[paramiko.Channel], None], **rest: Any) -> tuple[Rogue, SafeTransport]:
    rogue = Rogue(behaviour, **rest)
    access = Access("127.0.0.1", rogue.port, "me", (rogue.line,), "signed")
    return rogue, Dialer(access, new_key()[0], threading.Semaphore(4), Pace(probe=5)).dial()


def test_flood_on_a_channel_nobody_reads_ends_the_line_cheaply() -> None:
    rogue, transport = rogue_line(partial(flood, into="sendall"))
    before, deadline = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic() + 20
    try:
        channel = transport.open_exec("x", 10)
    except Unsafe:                       # the flood was quicker than the answer to the exec
        channel = None
    while transport.is_active() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not transport.is_active()
    if channel is not None:
        assert len(channel.in_buffer) <= 3 << 20 and isinstance(transport.get_exception(), Unsafe)
    rogue.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_standard_error_is_kept_nowhere() -> None:
    rogue, transport = rogue_line(partial(flood, into="sendall_stderr"))
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    channel = transport.open_exec("x", 10)
    time.sleep(0.5)
    assert transport.is_active() and not len(channel.in_stderr_buffer) and not len(channel.in_buffer)
    transport.close()
    rogue.close()
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_exec_that_is_never_answered_ends() -> None:
    rogue, transport = rogue_line(lambda channel: None, hold_exec=20)
    started = time.monotonic()
    with pytest.raises(paramiko.SSHException):
        transport.open_exec("x", 1)
    assert time.monotonic() - started < 5
    transport.close()
    rogue.close()


def test_peer_that_talks_on_but_takes_nothing_is_dead() -> None:
    rogue, transport = rogue_line(lambda channel: None)
    assert transport.stuck_for == 0.0
    transport.packetizer.writing = time.monotonic() - STUCK_SECONDS - 1  # type: ignore[attr-defined]
    deadline = time.monotonic() + 5
    while transport.is_active() and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not transport.is_active()
    rogue.close()


def test_window_that_opens_a_byte_at_a_time_is_not_waited_for() -> None:
    class Miser:
        """Takes one byte whenever it is asked."""

        def send(self, data: bytes) -> int:
            time.sleep(0.01)
            return 1
    started = time.monotonic()
    with pytest.raises(TimeoutError):
        send(Miser(), bytes(1 << 20), started + 0.3)  # type: ignore[arg-type]
    assert time.monotonic() - started < 2


# ---- new keys while channels close ------------------------------------------------------------------------


@pytest.fixture
def restless(tmp_path: Path) -> Iterator[Access]:
    """A real sshd that asks for new keys after every few packets, and runs one command for everybody."""
    private, public = new_key()
    (tmp_path / "authorized_keys").write_text(public)
    (tmp_path / "session").write_text('#!/bin/sh\nexec sh -c "$SSH_ORIGINAL_COMMAND"\n')
    (tmp_path / "session").chmod(0o755)
    (tmp_path / "key").write_bytes(private)
    port, line = free_port(), sshd.host_key(tmp_path)
    import getpass
    user = getpass.getuser()
    (tmp_path / "sshd_config").write_text(sshd.config(tmp_path, port, user, pam=False) + "RekeyLimit 64K\n")
    binary = sshd.find()
    assert binary, "these tests need sshd"
    sshd.prepare(binary, tmp_path / "sshd_config", user == "root")
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen([binary, "-D", "-e", "-f", str(tmp_path / "sshd_config")], stderr=log)
    try:
        yield Access("127.0.0.1", port, user, (line,), "signed")
    finally:
        server.terminate()
        server.wait(10)


def reached(access: Access, key: bytes) -> SafeTransport:
    deadline = time.monotonic() + 15
    while True:
        try:
            return Dialer(access, key, threading.Semaphore(4), Pace()).dial()
        except Unreached:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def test_new_keys_while_channels_close(restless: Access, tmp_path: Path) -> None:
    """Stock paramiko waits for itself here and fails after 30 s in every fourth run or so."""
    transport = reached(restless, (tmp_path / "key").read_bytes())
    started = time.monotonic()
    for _ in range(12):
        channels = [transport.open_exec("head -c 70000 /dev/zero", 20) for _ in range(3)]
        assert [len(read_all(c)) for c in channels] == [70_000] * 3
    transport.close()
    assert time.monotonic() - started < 60


def test_message_of_the_transport_thread_waits_for_the_new_keys(restless: Access, tmp_path: Path) -> None:
    transport = reached(restless, (tmp_path / "key").read_bytes())
    transport.renegotiate_keys()
    assert read_all(transport.open_exec("printf after", 20)) == b"after"
    assert not transport._deferred
    transport.close()


# ---- a peer that is gone ------------------------------------------------------------------------------------


def gone_after(pace: Pace, busy: bool) -> float:
    """Seconds until a connection whose packets are swallowed is known to be dead."""
    with lab_node() as renter:
        line = Line(renter.node.port)
        transport = connected(renter, line.port, pace)
        channel = transport.open_exec("cat > /dev/null" if busy else "sleep 60", 10)
        if busy:
            threading.Thread(target=_upload, args=(channel,), daemon=True).start()
            time.sleep(0.3)
        line.silent.set()
        started = time.monotonic()
        while transport.is_active() and time.monotonic() - started < 40:
            time.sleep(0.05)
        line.close()
        line.silent.clear()
        return time.monotonic() - started


def _upload(channel: paramiko.Channel) -> None:
    try:
        while channel.send(bytes(30_000)):
            continue
    except OSError:
        return


@pytest.mark.parametrize("busy", [False, True], ids=["idle", "uploading"])
def test_dead_peer_is_noticed(busy: bool) -> None:
    assert gone_after(Pace(probe=0.5), busy) < 6


@pytest.mark.full
@pytest.mark.parametrize("busy", [False, True], ids=["idle", "uploading"])
def test_dead_peer_is_noticed_within_twenty_seconds(busy: bool) -> None:
    assert gone_after(Pace(), busy) < 20


def test_quiet_peer_is_not_dead() -> None:
    """Nothing to say for longer than the limit, but the probes are answered."""
    with lab_node() as renter:
        transport = connected(renter, pace=Pace(probe=0.5))
        channel = transport.open_exec("sleep 4; printf here", 20)
        assert read_all(channel) == b"here"
        transport.close()
