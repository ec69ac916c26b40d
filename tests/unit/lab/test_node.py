"""The lab's node: who gets in, what a session can see, and that nothing of it survives."""
from __future__ import annotations

import os
import re
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import paramiko
import pytest

from orchestrator.lab import node as lab
from orchestrator.lab import reaper, sandbox, sshd
from orchestrator.lab.simulated_smi import NAME
from orchestrator.node.connection import Dialer, Pace, Unreached
from orchestrator.node.transport import SafeTransport
from tests.fakes.labnode import Renter, lab_node, new_key

pytestmark = pytest.mark.sealed
ROOT = os.geteuid() == 0


@pytest.fixture(scope="module")
def renter() -> Iterator[Renter]:
    with lab_node() as renter:
        yield renter


def connect(renter: Renter, key: bytes | None = None) -> SafeTransport:
    return Dialer(renter.access(), key or renter.key, threading.Semaphore(4), Pace()).dial()


def said(renter: Renter, command: str) -> str:
    transport = connect(renter)
    try:
        channel, data = transport.open_exec(command, 20), b""
        while piece := channel.recv(65536):
            data += piece
        return data.decode()
    finally:
        transport.close()


def test_is_a_real_sshd_with_its_own_key_on_loopback(renter: Renter) -> None:
    assert sshd.find() is None or renter.node.kind == "sshd"
    assert renter.node.host == "127.0.0.1" and renter.node.host_keys[0].startswith("ssh-ed25519 ")
    assert (Path(renter.node.folder) / "host_key").stat().st_mode & 0o077 == 0


def test_start_is_idempotent_and_finds_it_again(renter: Renter) -> None:
    folder = Path(renter.node.folder)
    assert lab.start(lab.NodeSpec(folder)) == lab.running(folder) == renter.node


def test_start_files_of_the_caller_s_shell_do_not_run(renter: Renter, tmp_path: Path) -> None:
    """bash that sshd starts runs ~/.bashrc, zsh ~/.zshenv: as the caller, before any right is dropped."""
    (tmp_path / ".bashrc").write_text("echo start file\n")
    config = (Path(renter.node.folder) / "sshd_config").read_text()
    (home,) = re.findall(r'^SetEnv "HOME=(.+)"$', config, re.M)
    assert not [f for f in Path(home).iterdir() if f.name.startswith(".")] and Path(home).stat().st_uid == os.geteuid()
    assert Path(home).stat().st_mode & 0o022 == 0, "a renter could put one there"
    assert as_sshd_starts_it(tmp_path) in ("start file\nran\n", "ran\n")       # not every bash is built to do so
    assert as_sshd_starts_it(Path(home)) == "ran\n"
    assert said(renter, "echo $HOME").strip() == renter.node.home


def as_sshd_starts_it(home: Path) -> str:
    ours, its = socket.socketpair()
    with ours, its:
        return subprocess.run(["bash", "-c", "echo ran"], stdin=its.fileno(), capture_output=True, text=True, check=True,
                              env={"HOME": str(home), "SSH_CLIENT": "::1 1 1", "PATH": os.defpath}).stdout


def test_session_lives_in_the_sandbox(renter: Renter) -> None:
    assert said(renter, "pwd; echo $HOME").split() == [renter.node.home] * 2
    assert NAME in said(renter, "nvidia-smi -q -x")
    assert said(renter, "nvidia-smi --query-gpu=x --format=csv").count(",") == 4
    assert said(renter, "python3 -c 'import sys; print(sys.version_info >= (3, 11))'") == "True\n"


def test_session_sees_no_environment_of_the_caller(renter: Renter) -> None:
    names = {line.partition("=")[0] for line in said(renter, "env").splitlines()}
    allowed = {"HOME", "USER", "LOGNAME", "LANG", "PATH", "PWD", "OLDPWD", "SHLVL", "_"}
    assert not [n for n in names - allowed if not n.startswith(lab.PASSED_ON)]


def test_session_cannot_read_the_caller_s_home(renter: Renter) -> None:
    """As root: another user, without groups, rights or ways to get them back; our homes and keys stay shut.
    As an ordinary user sessions are that user's, and the node says so."""
    if not ROOT:
        assert renter.node.uid is None and said(renter, "id -u").strip() == str(os.getuid())
        return
    identity = said(renter, "id -u; id -g; id -G").split()
    assert set(identity) == {str(renter.node.uid)} and renter.node.uid not in (0, None)
    home = Path.home()
    secret = home / f".sealtune-test-{os.getpid()}"
    mode = home.stat().st_mode & 0o777
    secret.write_text("of the caller")
    secret.chmod(0o600)
    try:
        told = said(renter, f"cat '{secret}' 2>&1; ls '{home}' 2>&1; touch '{home}/x' 2>&1; cat /etc/shadow 2>&1")
    finally:
        secret.unlink()
    assert "of the caller" not in told and "root:" not in told
    assert told.lower().count("denied") == (4 if not mode & 0o005 else 3)
    keys = (renter.node.authorized_keys, str(Path(renter.node.folder) / "host_key"))
    assert all("denied" in said(renter, f"cat '{path}' 2>&1").lower() for path in keys)
    status = said(renter, "cat /proc/self/status")
    assert "NoNewPrivs:\t1" in status and "CapBnd:\t0000000000000000" in status


def test_other_keys_other_users_and_passwords_stay_out(renter: Renter) -> None:
    with pytest.raises(Unreached):
        connect(renter, new_key()[0])
    transport = paramiko.Transport((renter.node.host, renter.node.port))
    transport.start_client(timeout=10)
    with pytest.raises(paramiko.BadAuthenticationType):
        transport.auth_password(renter.node.user, "x")
    transport.close()


@pytest.mark.parametrize("what", ["terminal", "sftp", "forward", "reverse", "shell"])
def test_there_is_nothing_but_commands(renter: Renter, what: str) -> None:
    transport = connect(renter)
    try:
        if what == "forward":
            with pytest.raises(paramiko.ChannelException):
                transport.open_channel("direct-tcpip", ("127.0.0.1", renter.node.port), ("127.0.0.1", 1), timeout=10)
        elif what == "reverse":
            with pytest.raises(paramiko.SSHException):
                transport.request_port_forward("127.0.0.1", 0)
        else:
            channel = transport.open_session(timeout=10)
            channel.settimeout(10)
            if what == "shell":
                channel.invoke_shell()
                assert channel.recv(10) == b""
            else:
                with pytest.raises((paramiko.SSHException, EOFError)):
                    channel.get_pty() if what == "terminal" else channel.invoke_subsystem("sftp")
    finally:
        transport.close()


LEAVE_BEHIND = "setsid sh -c 'sleep 300 & exec sleep 301' >/dev/null 2>&1 </dev/null & echo started"


def both_sleep(renter: Renter) -> bool:
    """Wait until what was started has become what it is to be."""
    deadline = time.monotonic() + 10
    while len(sleepers(renter)) < 2 and time.monotonic() < deadline:
        time.sleep(0.05)
    return len(sleepers(renter)) == 2


def sleepers(renter: Renter) -> list[int]:
    found = []
    for pid in reaper.descendants(renter.node.pid):
        line = (Path("/proc") / str(pid) / "cmdline").read_bytes() if reaper.alive(pid) else b""
        if b"sleep\x00300" in line or b"sleep\x00301" in line:
            found.append(pid)
    return found


@pytest.mark.noleak
def test_lock_out_ends_sessions_and_what_they_left_but_not_the_server(renter: Renter) -> None:
    assert "started" in said(renter, LEAVE_BEHIND)
    transport = connect(renter)
    channel = transport.open_exec("sleep 302", 10)
    assert both_sleep(renter)
    done = subprocess.run([sys.executable, "-m", "orchestrator.lab.node", "lock-out", renter.node.folder], check=False)
    assert done.returncode == 0 and not sleepers(renter)
    assert channel.recv(1) == b"" and lab.running(Path(renter.node.folder))
    transport.close()
    assert said(renter, "echo again") == "again\n"


@pytest.mark.noleak
def test_stop_leaves_nothing() -> None:
    with lab_node() as other:
        assert "started" in said(other, LEAVE_BEHIND)
        assert both_sleep(other)
        tree = [other.node.pid, *reaper.descendants(other.node.pid)]
        lab.stop(Path(other.node.folder))
        deadline = time.monotonic() + 10
        while any(reaper.alive(pid) for pid in tree) and time.monotonic() < deadline:
            time.sleep(0.05)
        assert not [pid for pid in tree if reaper.alive(pid)]
        assert lab.running(Path(other.node.folder)) is None
        lab.stop(Path(other.node.folder))


def test_asyncssh_stands_in_where_there_is_no_sshd(renter: Renter, tmp_path: Path) -> None:
    """The same wrapper and key; large answers arrive whole."""
    (tmp_path / "session").write_text((Path(renter.node.folder) / "session").read_text())
    (tmp_path / "session").chmod(0o755)
    private, public = new_key()
    (tmp_path / "authorized_keys").write_text(f"restrict {public}\n")
    line, port = sshd.host_key(tmp_path), lab.free_port()
    (tmp_path / "asyncssh.json").write_text(f'{{"port": {port}, "user": "me", "folder": "{tmp_path}"}}')
    server = subprocess.Popen([sys.executable, "-m", "orchestrator.lab.asyncssh_node", str(tmp_path / "asyncssh.json")])
    from orchestrator.domain.lease import Access
    dialer = Dialer(Access("127.0.0.1", port, "me", (line,), "signed"), private, threading.Semaphore(4), Pace())
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                transport = dialer.dial()
                break
            except Unreached:
                assert time.monotonic() < deadline
                time.sleep(0.1)
        channel, size = transport.open_exec("pwd >&2; head -c 33554432 /dev/zero; exit 7", 20), 0
        while piece := channel.recv(1 << 18):
            size += len(piece)
        assert size == 32 << 20 and channel.recv_exit_status() == 7
        transport.close()
    finally:
        server.terminate()
        server.wait(10)


def test_python_must_be_runnable_by_the_sessions_user(tmp_path: Path) -> None:
    fake = tmp_path / "python3"
    fake.write_text("#!/bin/sh\necho 3.9\n")
    fake.chmod(0o755)
    assert not sandbox._runs(fake, None)
    assert sandbox._runs(Path(sys.executable).resolve(), None)


def test_python_below_a_shut_folder_is_not_chosen(tmp_path: Path) -> None:
    uid = 54_321 if ROOT else None
    (tmp_path / "shut").mkdir(mode=0o700)
    link = tmp_path / "shut" / "python3"
    link.symlink_to(sandbox._python(uid))
    assert sandbox._runs(link, uid) is not ROOT


def test_nothing_secret_is_passed_on() -> None:
    mine = {"PIP_FIND_LINKS": "wheels", "UV_INDEX": "x", "UV_CACHE_DIR": "c", "UV_PUBLISH_TOKEN": "t", "HF_TOKEN": "s",
            "SSH_AUTH_SOCK": "a", "HOME": "h", "PIP_CACHE_DIR": "c"}
    assert lab.passed_on(mine) == {"PIP_FIND_LINKS": "wheels", "UV_INDEX": "x"}
