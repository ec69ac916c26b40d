"""One pinned SSH connection to a node: fabric on a safe transport. The only place where a connection is made.

The host key is compared before anything of ours is sent, authentication included. It must not read the person's ssh
configuration, offer keys it was not told to, forward an agent, or know what is said over the connection.
"""
from __future__ import annotations

import errno
import io
import socket
import threading
from dataclasses import dataclass
from functools import partial
from typing import Any

import fabric
import paramiko

from ..domain.hostkey import fingerprint
from ..domain.lease import Access
from ..errors import HostKeyChanged
from .transport import SafeTransport, Unsafe, close_quietly

RSA = ("rsa-sha2-512", "rsa-sha2-256")
AGENT = "agent"


class Unreached(Exception):
    """No usable connection, this time. `refused`: it is there and did not let us in.

    The message is in our own words: no text of the peer, of the library or of the system, no address."""

    def __init__(self, message: str, refused: bool = False) -> None:
        super().__init__(message)
        self.refused = refused


@dataclass(frozen=True, slots=True)
class Pace:
    """How patient one connection is, in seconds. `silence`: a node at work that says nothing for so long is dead."""

    connect: int = 10
    banner: int = 15
    auth: int = 20
    channel: int = 20
    silence: int = 15
    probe: float = 5.0


class Pin(paramiko.MissingHostKeyPolicy):
    """Accepts the keys of `access` and nothing else. It runs after the key exchange and before authentication."""

    def __init__(self, access: Access) -> None:
        self.keys = tuple(tuple(k.split()[:2]) for k in access.host_keys)

    def key_types(self) -> tuple[str, ...]:
        """Only the pinned types may be negotiated: a host with several keys would offer another one first."""
        types = dict.fromkeys(kind for kind, _ in self.keys)
        return tuple(name for kind in types for name in (RSA if kind == "ssh-rsa" else (kind,)))

    def missing_host_key(self, client: paramiko.SSHClient, hostname: str, key: paramiko.PKey) -> None:
        transport = client.get_transport()
        if (key.get_name(), key.get_base64()) not in self.keys:
            raise HostKeyChanged(self.shown(), fingerprint(f"{key.get_name()} {key.get_base64()}"))
        if not isinstance(transport, SafeTransport) or not transport.sound:
            raise Unsafe("no strict key exchange and no AES-GCM")
        transport.trusted = True

    def shown(self) -> str:
        return ", ".join(fingerprint(" ".join(key)) or "no key" for key in self.keys)


class Dialer:
    """Opens connections to one node, at most as many handshakes at a time as `gate` lets through."""

    def __init__(self, access: Access, ssh_key: bytes, gate: threading.Semaphore, pace: Pace) -> None:
        self.access, self.pace, self._gate = access, pace, gate
        self._pin = Pin(access)
        self._credentials = credentials(access, ssh_key)

    def dial(self) -> SafeTransport:
        """A living, authenticated, watched transport; one attempt. Raises Unreached, HostKeyChanged."""
        with self._gate:
            return self._once()

    def _once(self) -> SafeTransport:
        connection = self._connection()
        try:
            connection.open()
            transport = connection.transport
            assert isinstance(transport, SafeTransport)
        except HostKeyChanged:
            close_quietly(connection.client.close)       # its own `close` only ends what came to be a connection
            raise
        except Exception as error:       # whatever the library throws at a hostile server: this attempt failed
            link = connection.client.get_transport()
            at_the_door = isinstance(link, SafeTransport) and link.trusted and not link.is_authenticated()
            close_quietly(connection.client.close)
            raise (_refused(error) if at_the_door else self._translated(error)) from error
        transport.watch(self.pace.probe)
        return transport

    def _connection(self) -> Any:
        """A fabric connection without any configuration but ours. Its client keeps nothing of known_hosts."""
        config = fabric.Config(lazy=True, ssh_config=paramiko.SSHConfig())
        options = {
            "transport_factory": partial(SafeTransport, key_types=self._pin.key_types()),
            "look_for_keys": False, "banner_timeout": self.pace.banner, "auth_timeout": self.pace.auth,
            "channel_timeout": self.pace.channel, **self._credentials,
        }
        connection = fabric.Connection(self.access.host, user=self.access.user, port=self.access.port, config=config,
                                       forward_agent=False, connect_timeout=self.pace.connect, connect_kwargs=options)
        connection.client.set_missing_host_key_policy(self._pin)
        return connection

    def _translated(self, error: Exception) -> Exception:
        if isinstance(error, paramiko.ssh_exception.IncompatiblePeer) and "host key" in str(error):
            return HostKeyChanged(self._pin.shown(), "no key of that type")
        if isinstance(error, socket.gaierror):
            return Unreached("the node's name is not known")
        if isinstance(error, paramiko.ssh_exception.IncompatiblePeer):
            return Unreached("the node offers no algorithm that is strong enough")
        return Unreached(_words(error))


def _refused(error: Exception) -> Unreached:
    """The host is the right one, and the login did not come about. The library says so in a dozen ways."""
    if isinstance(error, paramiko.PasswordRequiredException):
        return Unreached("the key file has a passphrase: let an ssh agent hold the key", refused=True)
    if isinstance(error, TimeoutError) or "timeout" in str(error).lower():
        return Unreached("the node does not answer to the login")
    if isinstance(error, paramiko.SSHException | EOFError):
        return Unreached("the node does not let us in", refused=True)
    return Unreached(_words(error))


def _words(error: Exception) -> str:
    """What became of the attempt. The library's own text holds addresses and the server's bytes; it stays in the chain."""
    if isinstance(error, Unsafe):
        return str(error)
    if isinstance(error, paramiko.ssh_exception.NoValidConnectionsError):
        error = next(iter(error.errors.values()), error)
    if isinstance(error, TimeoutError):
        return "the node does not answer"
    if isinstance(error, OSError):
        return f"no connection to the node: {errno.errorcode.get(error.errno or 0, type(error).__name__)}"
    if isinstance(error, EOFError):
        return "the node hung up"
    return f"the node speaks no ssh that can be used: {type(error).__name__}"


def credentials(access: Access, ssh_key: bytes) -> dict[str, Any]:
    """What authenticates: the lease's own key from memory, the person's agent, or the person's key file."""
    if access.identity == AGENT:
        return {"allow_agent": True}
    if access.identity:
        return {"allow_agent": False, "key_filename": access.identity}
    return {"allow_agent": False, "pkey": paramiko.Ed25519Key(file_obj=io.StringIO(ssh_key.decode()))}
