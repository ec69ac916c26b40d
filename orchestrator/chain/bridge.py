"""A page on this machine that asks the wallet in the person's browser: which account, and to sign typed data.

The key never comes here, and no transaction is asked for, since a browser's wallet sends those itself and nobody could
say afterwards whether it did. One page, one answer, then the server is gone.

Who may ask: only a browser on this machine that was given the address, which holds a random token. Other pages in that
browser cannot: the token is not theirs, the Host must be ours (a name that was made to lead here is not), and an answer
must come from our own page. The page may load nothing and talk to nobody else.
"""
from __future__ import annotations

import hmac
import json
import secrets
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import resources
from typing import Any

from ..domain.document import parse
from ..errors import Refused

PATIENCE_S = 600
_BODY_MAX = 256 * 1024


@dataclass(frozen=True, slots=True)
class Document:
    """One thing to sign. `words`: what it means, for the person; `typed`: for eth_signTypedData_v4."""

    words: str
    typed: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Ask:
    """What the page asks. `account` "": any. `rpc`: only of a lab, so that a wallet can be told of its chain."""

    title: str
    network: str
    chain_id: int
    account: str = ""
    rpc: str = ""
    documents: Sequence[Document] = ()


def ask(request: Ask, show: Callable[[str], None], patience_s: float = PATIENCE_S) -> Mapping[str, Any]:
    """The page's answer as it came, not checked yet. `show` gets the page's address. Refused: nobody answered, or no."""
    with _Server(request) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            show(server.url)
            deadline = time.monotonic() + patience_s
            while not server.answered.wait(0.2):     # short, so that Ctrl-C is heard
                if time.monotonic() >= deadline:
                    raise Refused(f"nobody answered in the browser for {patience_s:.0f} s", hint="the same command again")
        finally:
            server.shutdown()
            thread.join()
    if "refused" in server.answer:
        raise Refused("the wallet in the browser said no", hint="nothing was signed")
    return server.answer


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False               # a browser keeps connections open that it does not use

    def __init__(self, request: Ask) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.token, self.nonce = secrets.token_hex(32), secrets.token_hex(16)
        self.host = f"127.0.0.1:{self.server_address[1]}"
        self.url = f"http://{self.host}/{self.token}/"
        self.page = resources.files(__package__).joinpath("bridge.html").read_text().replace("@NONCE@", self.nonce).encode()
        self.question = json.dumps(asdict(request)).encode()
        self.answered, self.answer = threading.Event(), dict[str, Any]()
        self._one_only = threading.Lock()

    def take(self, answer: dict[str, Any]) -> bool:
        """False for all but the first."""
        if not self._one_only.acquire(blocking=False):
            return False
        self.answer = answer
        return True

    def handle_error(self, *_: Any) -> None:
        """A browser that hangs up is no news."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    server_version, sys_version = "sealtune", ""
    timeout = 15
    wbufsize = -1

    def do_GET(self) -> None:
        name = self._asked()
        if name == "":
            self._reply(200, "text/html; charset=utf-8", self.server.page)
        elif name == "ask" and self._has_token():
            self._reply(200, "application/json", self.server.question)
        elif name is not None:
            self._reply(404)

    def do_POST(self) -> None:
        name = self._asked()
        if name is None:
            return
        if self.headers.get("Origin") != f"http://{self.server.host}" or not self._has_token():
            self._reply(403)
        elif name != "answer":
            self._reply(404)
        else:
            self._take()

    def _take(self) -> None:
        answer = self._body()
        if answer is None:
            self._reply(400)
        elif not self.server.take(answer):
            self._reply(409)
        else:
            self._reply(204)
            self.wfile.flush()
            self.server.answered.set()

    def _asked(self) -> str | None:
        """What of our page is asked for; None when it was answered already: not our address, or not our token."""
        _, token, *name = self.path.split("/")[:3] if self.path.count("/") == 2 else ("", "", "")
        if self.headers.get_all("Host") != [self.server.host]:
            self._reply(403)
        elif not _same(token, self.server.token):
            self._reply(404)
        else:
            return name[0] if name else ""
        return None

    def _has_token(self) -> bool:
        return _same(self.headers.get("Sealtune-Token") or "", self.server.token)

    def _body(self) -> dict[str, Any] | None:
        size = self.headers.get("Content-Length") or ""
        if self.headers.get("Content-Type") != "application/json" or not size.isdecimal() or int(size) > _BODY_MAX:
            return None
        try:
            found = parse(self.rfile.read(int(size)))
        except ValueError:
            return None
        return found if isinstance(found, dict) else None

    def _reply(self, status: int, kind: str = "text/plain", body: bytes = b"") -> None:
        nonce = self.server.nonce
        self.send_response(status)
        for name, value in (
                ("Content-Type", kind), ("Content-Length", str(len(body))), ("Connection", "close"),
                ("Cache-Control", "no-store"), ("X-Frame-Options", "DENY"), ("X-Content-Type-Options", "nosniff"),
                ("Referrer-Policy", "no-referrer"), ("Cross-Origin-Opener-Policy", "same-origin"),
                ("Cross-Origin-Resource-Policy", "same-origin"),
                ("Content-Security-Policy",
                 f"default-src 'none'; script-src 'nonce-{nonce}'; style-src 'nonce-{nonce}'; connect-src 'self'; "
                 "base-uri 'none'; form-action 'none'; frame-ancestors 'none'")):
            if status != 204 or name != "Content-Length":
                self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body)
        self.close_connection = True

    def log_message(self, format: str, *args: Any) -> None:
        """Its lines would show the token."""


def _same(given: str, ours: str) -> bool:
    return hmac.compare_digest(given.encode(errors="replace"), ours.encode())
