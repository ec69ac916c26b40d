"""The user's own server: where it is, who logs in, and by which key it is known. Reads the user's ssh files, changes none.

    address(alias, …)      host, port, user and identity as the user's ssh configuration has them
    pin(at, …)             the keys by which it is known from now on
    known_keys(files, …)   host keys that a known_hosts file already names
    shown_key(host, port)  the key that a server shows, not trusted yet: nothing is sent but the key exchange
"""
from __future__ import annotations

import getpass
import socket
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..domain.hostkey import fingerprint
from ..domain.text import clean
from ..errors import BadInput, Refused, Unreachable

SECONDS = 20
AGENT = "agent"
DEFAULT_KEYS = ("id_ed25519", "id_ecdsa", "id_rsa")     # what ssh tries by itself, in our order


@dataclass(frozen=True, slots=True)
class Pin:
    """The keys by which a server is known from now on, and how they came to be trusted: see Access.trust."""

    keys: tuple[str, ...]
    trust: str


@dataclass(frozen=True, slots=True)
class Address:
    """`identity`: the path of a private key file, or "agent"."""

    host: str
    port: int
    user: str
    identity: str


def address(alias: str, port: int | None, user: str | None, identity: Path | None, ssh_config: Path) -> Address:
    """What is given counts; the rest comes from the alias's entry, then from what ssh itself would take."""
    entry = _entry(alias, ssh_config)
    key = _named(identity) if identity else _usual(list(entry.get("identityfile", ())), ssh_config.parent)
    return Address(str(entry.get("hostname", alias)), port or int(str(entry.get("port", "22"))),
                   user or str(entry.get("user", getpass.getuser())), key)


def _named(identity: Path) -> str:
    file = identity.expanduser()
    if not file.is_file():
        raise BadInput(f"identity {identity}: no such file", hint="name a private key file in `ssh:`, or leave it out")
    return str(file)


def _usual(named: Sequence[str], folder: Path) -> str:
    """The alias's key file; the agent where that has a passphrase, or none is named and the agent holds any key; else the
    key that ssh itself would take."""
    wanted = [Path(name).expanduser() for name in named]
    if not wanted and _agent_keys():
        return AGENT
    file = next((f for f in wanted or [folder / name for name in DEFAULT_KEYS] if f.is_file()), None)
    return str(file) if file and not _has_passphrase(file) else AGENT


def _agent_keys() -> int:
    import paramiko

    agent = paramiko.Agent()
    try:
        return len(agent.get_keys())
    finally:
        agent.close()


def _has_passphrase(file: Path) -> bool:
    import paramiko

    try:
        paramiko.PKey.from_path(file)
    except (paramiko.PasswordRequiredException, TypeError):      # the latter comes from the library below
        return True
    except Exception:  # noqa: BLE001 why: whatever else is wrong with it is told when it is used
        return False
    return False


def pin(at: Address, wanted: str | None, users: Path, ours: Path, confirm: Callable[[str], bool]) -> Pin:
    """Decide which keys are the server's: `wanted` fingerprint, the user's known_hosts, ours, else the person is asked
    once. Refused when the server shows another key than wanted, or nobody vouches for it."""
    if wanted:
        return _as_wanted(at, wanted)
    if keys := known_keys((users,), at.host, at.port):
        return Pin(keys, "known_hosts")
    if keys := known_keys((ours,), at.host, at.port):
        return Pin(keys, "confirmed")
    key = shown_key(at.host, at.port)
    if not confirm(f"{at.host} shows host key {fingerprint(key)}, unknown so far; is that right?"):
        raise Refused(f"host key {fingerprint(key)} of {at.host} is not confirmed",
                      hint="add `fingerprint:` to `ssh:` in the run file, or connect once with ssh")
    remember(ours, at.host, at.port, key)
    return Pin((key,), "confirmed")


def _as_wanted(at: Address, wanted: str) -> Pin:
    key = shown_key(at.host, at.port)
    if fingerprint(key) != wanted:
        raise Refused(f"{at.host} shows host key {fingerprint(key)}, the run file says {wanted}",
                      hint="find out why before anything is sent there")
    return Pin((key,), "fingerprint")


def known_keys(files: Sequence[Path], host: str, port: int) -> tuple[str, ...]:
    """Every key under which these files know the host, "ssh-ed25519 AAAA…"."""
    import paramiko

    found: dict[str, None] = {}
    for file in files:
        if not file.is_file():
            continue
        keys = paramiko.HostKeys()
        try:
            keys.load(str(file))
        except (OSError, paramiko.SSHException) as problem:
            raise BadInput(f"{file} cannot be read: {clean(problem)}") from problem
        entry: Mapping[str, Any] = keys.lookup(_name(host, port)) or {}
        found |= dict.fromkeys(f"{kind} {key.get_base64()}" for kind, key in entry.items())
    return tuple(found)


def shown_key(host: str, port: int) -> str:
    """"ssh-ed25519 AAAA…" as the server shows it. Unreachable. Nobody is logged in."""
    import paramiko

    from .transport import SafeTransport

    try:
        link = socket.create_connection((host, port), timeout=SECONDS)
    except OSError as problem:
        raise Unreachable(f"{host}:{port} does not answer: {problem.strerror or problem}") from problem
    transport = SafeTransport(link)
    try:
        transport.start_client(timeout=SECONDS)
        key = transport.get_remote_server_key()
        return f"{key.get_name()} {key.get_base64()}"
    except (paramiko.SSHException, OSError, EOFError) as problem:
        raise Unreachable(f"{host}:{port} speaks no ssh that can be used: {clean(problem)}") from problem
    finally:
        transport.close()


def remember(file: Path, host: str, port: int, key: str) -> None:
    """A confirmed key into a known_hosts file of our own."""
    file.touch(mode=0o600, exist_ok=True)
    with file.open("a", encoding="ascii") as out:
        out.write(f"{_name(host, port)} {key}\n")


def _name(host: str, port: int) -> str:
    return host if port == 22 else f"[{host}]:{port}"


def _entry(alias: str, ssh_config: Path) -> dict[str, Any]:
    import paramiko

    if not ssh_config.is_file():
        return {}
    try:
        return dict(paramiko.SSHConfig.from_path(str(ssh_config)).lookup(alias))
    except (OSError, paramiko.SSHException, ValueError) as problem:
        raise BadInput(f"{ssh_config} cannot be read: {clean(problem)}") from problem
