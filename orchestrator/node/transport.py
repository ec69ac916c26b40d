"""paramiko's transport, made safe. The one module that touches private names of paramiko 5.1; tests guard each cure.

It cures five defects that were reproduced on 5.1.0: the rekey self-deadlock, the quadratic `sendall`, the quadratic
receive buffer, windows that grow too large, and the dead peer nobody notices. It bounds what a hostile server may make
us keep (banners, packets, more than its window) and how long it may hold us (an exec that is never answered, a socket
that takes no bytes), and offers strong algorithms only. It must not know hosts, keys or pins (connection.py).
"""
from __future__ import annotations

import contextlib
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import paramiko
from paramiko.buffered_pipe import PipeTimeout
from paramiko.packet import Packetizer

WINDOW = 2 * 1024 * 1024                 # 8 MiB at most: a larger one makes sshd buffer and repack it
CHUNK = 32704                            # what fits one SSH packet
PACKET_MAX = 512 * 1024                  # OpenSSH's own limit is 256 KiB
BANNER_MAX = 16 * 1024
CIPHERS = ("aes128-gcm@openssh.com", "aes256-gcm@openssh.com", "aes128-ctr", "aes192-ctr", "aes256-ctr")
MACS = ("hmac-sha2-256-etm@openssh.com", "hmac-sha2-512-etm@openssh.com", "hmac-sha2-256", "hmac-sha2-512")
KEX = ("mlkem768x25519-sha256", "curve25519-sha256@libssh.org", "ecdh-sha2-nistp256", "ecdh-sha2-nistp384",
       "ecdh-sha2-nistp521", "diffie-hellman-group16-sha512")
KEY_TYPES = ("ssh-ed25519", "ecdsa-sha2-nistp256", "ecdsa-sha2-nistp384", "ecdsa-sha2-nistp521",
             "rsa-sha2-512", "rsa-sha2-256")
PROBE_SECONDS, PROBES = 5, 3
STUCK_SECONDS = 60                       # for which one packet may wait to be taken by the peer's socket

_log = logging.getLogger("paramiko")     # it logs the server's own words: not to be shown to anybody
_log.addHandler(logging.NullHandler())
_log.propagate = False


class Unsafe(paramiko.SSHException):
    """The peer broke a bound of ours. The message is in our own words and safe to show."""


class DequePipe:
    """A channel's receive buffer in linear time: chunks in a deque instead of one array that is cut at the front.
    It stands in for paramiko's BufferedPipe and has the same methods. `most`: bytes kept; who sends more
    than its window allows ends the line."""

    def __init__(self, most: int = WINDOW + PACKET_MAX) -> None:
        self._most = most
        self._changed = threading.Condition()
        self._event: threading.Event | None = None
        self._closed = False
        self._chunks: deque[bytes] = deque()
        self._size = 0

    def set_event(self, event: threading.Event) -> None:
        with self._changed:
            self._event = event
            (event.set if self._closed or self._size else event.clear)()

    def feed(self, data: bytes | str) -> None:
        raw = data.encode() if isinstance(data, str) else bytes(data)
        with self._changed:
            if self._size + len(raw) > self._most:
                raise Unsafe("the server sends more than it may")
            if raw:
                self._chunks.append(raw)
                self._size += len(raw)
            if self._event is not None:
                self._event.set()
            self._changed.notify_all()

    def read_ready(self) -> bool:
        return len(self) > 0

    def read(self, nbytes: int, timeout: float | None = None) -> bytes:
        """At most `nbytes`; b"" when closed and empty. PipeTimeout when nothing came in time."""
        deadline = None if timeout is None else time.monotonic() + timeout
        with self._changed:
            while not self._size and not self._closed:
                left = None if deadline is None else deadline - time.monotonic()
                if left is not None and left <= 0:
                    raise PipeTimeout
                self._changed.wait(left)
            return self._take(nbytes)

    def empty(self) -> bytes:
        with self._changed:
            return self._take(self._size)

    def close(self) -> None:
        with self._changed:
            self._closed = True
            if self._event is not None:
                self._event.set()
            self._changed.notify_all()

    def _take(self, nbytes: int) -> bytes:
        taken: list[bytes] = []
        room = nbytes
        while self._chunks and room > 0:
            chunk = self._chunks.popleft()
            if len(chunk) > room:
                self._chunks.appendleft(chunk[room:])
                chunk = chunk[:room]
            taken.append(chunk)
            room -= len(chunk)
        self._size -= nbytes - room
        if not self._size and self._event is not None and not self._closed:
            self._event.clear()
        return b"".join(taken)

    def __len__(self) -> int:
        with self._changed:
            return self._size


class Sink(DequePipe):
    """A buffer that keeps nothing: the standard error of a node is nobody's business."""

    def feed(self, data: bytes | str) -> None:
        return


class BoundedPacketizer(Packetizer):
    """Never asks for new keys from our side (a rekey on a slow uplink can take longer than its own deadline), notes
    when the peer was last heard and since when a packet waits for it, and refuses packets and banners of absurd size."""

    REKEY_BYTES = 1 << 36
    REKEY_PACKETS = 1 << 31
    heard = 0.0
    writing = 0.0                        # since when the peer takes no bytes; 0 while nothing waits
    _banner = 0
    _ends = 0.0

    def read_all(self, n: int, check_rekey: bool = False) -> bytes:
        if n > PACKET_MAX:
            raise Unsafe(f"the server announces a packet of {n} bytes")
        data: bytes = super().read_all(n, check_rekey)
        self.heard = time.monotonic()
        return data

    def _read_timeout(self, timeout: float) -> bytes:
        """Used for the banner only: its size and its time are bounded as a whole, not per line."""
        self._ends = self._ends or time.monotonic() + timeout + 5
        data: bytes = super()._read_timeout(timeout)  # type: ignore[misc]  # untyped there
        self._banner += len(data)
        if self._banner > BANNER_MAX or time.monotonic() > self._ends:
            raise Unsafe("the server's banner has no end")
        self.heard = time.monotonic()
        return data

    def write_all(self, out: Any) -> None:
        self.writing = time.monotonic()
        try:
            super().write_all(out)
        finally:
            self.writing = 0.0


class SafeTransport(paramiko.Transport):
    """A client transport for one host. `key_types`: host key algorithms that may be negotiated, best first."""

    _CLIENT_ID = "sealtune"              # not the library's version: it names this laptop's weaknesses
    trusted = False                      # its host key was compared; what fails from then on is the login

    def __init__(self, sock: Any, disabled_algorithms: Any = None, key_types: Sequence[str] = KEY_TYPES) -> None:
        self._deferred: deque[Any] = deque()
        super().__init__(sock, default_window_size=WINDOW, packetizer_class=BoundedPacketizer)
        offered = self.get_security_options()
        offered.ciphers, offered.digests, offered.kex = CIPHERS, MACS, KEX
        offered.key_types = tuple(key_types)

    def _send_user_message(self, data: Any) -> None:
        """The transport's own thread never waits for new keys: only it could bring them."""
        if threading.current_thread() is self and not self.clear_to_send.is_set():
            self._deferred.append(data)
            return
        super()._send_user_message(data)  # type: ignore[misc]  # private, untyped there

    def _parse_newkeys(self, m: Any) -> None:
        super()._parse_newkeys(m)  # type: ignore[misc]  # private, untyped there
        while self._deferred:
            super()._send_user_message(self._deferred.popleft())  # type: ignore[misc]

    @property
    def silent_for(self) -> float:
        """Seconds since the peer sent anything at all."""
        assert isinstance(self.packetizer, BoundedPacketizer)
        return time.monotonic() - self.packetizer.heard

    @property
    def stuck_for(self) -> float:
        """Seconds for which a packet of ours has been waiting to be taken, however much the peer says meanwhile."""
        assert isinstance(self.packetizer, BoundedPacketizer)
        since = self.packetizer.writing
        return time.monotonic() - since if since else 0.0

    @property
    def sound(self) -> bool:
        """Strict key exchange, or a cipher that the prefix truncation attack does not touch."""
        return bool(getattr(self, "agreed_on_strict_kex", False)) or "gcm" in str(self.local_cipher)

    def open_exec(self, command: str, timeout: float) -> paramiko.Channel:
        """An exec channel with the linear buffer; stderr is thrown away. The library would wait for ever for an answer
        to the exec itself; after `timeout` seconds the channel is closed under it: SSHException."""
        channel = self.open_session(window_size=WINDOW, timeout=timeout)
        channel.in_buffer, channel.in_stderr_buffer = DequePipe(), Sink()  # type: ignore[assignment]
        channel.settimeout(timeout)
        ends = threading.Timer(timeout, close_quietly, (channel.close,))
        ends.daemon = True
        ends.start()
        try:
            channel.exec_command(command)
        finally:
            ends.cancel()
        return channel

    def watch(self, every: float = PROBE_SECONDS, times: int = PROBES) -> None:
        """From now on a peer that answers nothing for `times` probes, or takes nothing, is dead, and the transport too."""
        self.packetizer.set_keepalive(every, self._probe)
        name = f"watch-{self.name}"
        threading.Thread(target=self._watch, args=(every, times), name=name, daemon=True).start()

    def _probe(self) -> None:
        """A question that must be answered, asked by the transport's own thread whenever nothing comes in."""
        message = paramiko.Message()
        message.add_byte(bytes([80]))    # SSH_MSG_GLOBAL_REQUEST
        message.add_string("keepalive@openssh.com")
        message.add_boolean(True)
        self._send_user_message(message)

    def _watch(self, every: float, times: int) -> None:
        while self.is_active():
            if self.silent_for > every * times + 1 or self.stuck_for > STUCK_SECONDS:
                with contextlib.suppress(OSError):
                    self.sock.close()    # first: a thread stuck in a write must fail at once
                self.close()
                return
            time.sleep(min(1.0, every / 2))


def close_quietly(close: Callable[[], object]) -> None:
    """Close something that may be dead already."""
    with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
        close()


def send(channel: paramiko.Channel, data: bytes, until: float = float("inf")) -> None:
    """All of `data`, in linear time. EOFError when the channel died, TimeoutError when its window stays shut or opens
    so little at a time that `until` (monotonic) passes."""
    view, offset = memoryview(data), 0
    while offset < len(view):
        if time.monotonic() > until:
            raise TimeoutError("not taken in time")
        sent = channel.send(bytes(view[offset:offset + CHUNK]))
        if sent == 0:
            raise EOFError("channel closed while sending")
        offset += sent
