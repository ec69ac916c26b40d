"""SSH servers that do not mean well, on loopback. They note everything that came from us before they were trusted."""
from __future__ import annotations

import contextlib
import socket
import threading
import time
from collections.abc import Callable, Sequence

import paramiko

Behaviour = Callable[[paramiko.Channel], None]


class Interface(paramiko.ServerInterface):
    """Lets everybody in and remembers what was tried."""

    def __init__(self, rogue: Rogue) -> None:
        self._rogue = rogue

    def get_allowed_auths(self, username: str) -> str:
        self._rogue.heard.append(f"asked how to log in as {username}")
        return "publickey"

    def check_auth_none(self, username: str) -> int:
        self._rogue.heard.append("none")
        return paramiko.AUTH_FAILED

    def check_auth_publickey(self, username: str, key: paramiko.PKey) -> int:
        self._rogue.heard.append("key")
        return paramiko.AUTH_SUCCESSFUL if self._rogue.let_in else paramiko.AUTH_FAILED

    def check_channel_request(self, kind: str, chanid: int) -> int:
        self._rogue.heard.append(f"channel {kind}")
        return paramiko.OPEN_SUCCEEDED

    def check_channel_exec_request(self, channel: paramiko.Channel, command: bytes) -> bool:
        self._rogue.heard.append("exec")
        time.sleep(self._rogue.hold_exec)
        threading.Thread(target=self._rogue.behave, args=(channel,), daemon=True).start()
        return True


class Rogue:
    """A server with a host key of its own. `behaviour` plays the agent; `offers` narrows the algorithms;
    `hold_exec`: seconds for which the wish to run something is not answered."""

    def __init__(self, behaviour: Behaviour = lambda channel: None, offers: dict[str, Sequence[str]] | None = None,
                 key: paramiko.PKey | None = None, let_in: bool = True, hold_exec: float = 0) -> None:
        self.key = key or paramiko.ECDSAKey.generate(bits=256)
        self.heard: list[str] = []
        self.let_in, self.hold_exec = let_in, hold_exec
        self.transports: list[paramiko.Transport] = []
        self._behaviour, self._offers = behaviour, offers or {}
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    @property
    def line(self) -> str:
        return f"{self.key.get_name()} {self.key.get_base64()}"

    def behave(self, channel: paramiko.Channel) -> None:
        with contextlib.suppress(OSError, EOFError, paramiko.SSHException):
            self._behaviour(channel)

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)          # wakes the thread that accepts
        self._listener.close()
        for transport in self.transports:
            transport.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                transport = paramiko.Transport(near)
                transport.add_server_key(self.key)
                for what, names in self._offers.items():
                    setattr(transport.get_security_options(), what, tuple(names))
                self.transports.append(transport)
                with contextlib.suppress(paramiko.SSHException, EOFError):
                    transport.start_server(event=threading.Event(), server=Interface(self))


class RawServer:
    """Not SSH at all: `behaviour` gets each accepted socket."""

    def __init__(self, behaviour: Callable[[socket.socket], None]) -> None:
        self._behaviour = behaviour
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)          # wakes the thread that accepts
        self._listener.close()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                threading.Thread(target=self._serve, args=(near,), daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        with contextlib.suppress(OSError), near:
            self._behaviour(near)
