"""Stands between a payer and the chain and kills it at the n-th question: before it is passed on, after, or after the
answer. So every step of sending is hit without a hook in what is tested. It may also trouble the chain there.
"""
from __future__ import annotations

import contextlib
import json
import os
import signal
import threading
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from orchestrator.lab import chain

SEND, RECEIPT = "eth_sendRawTransaction", "eth_getTransactionReceipt"
_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


@dataclass(frozen=True)
class Kill:
    """`at`: the how-manieth question, or of this `method` where one is named. `when`: before | after | answered, the last
    one `later` seconds after. `trouble`: what the chain does at that moment: drop | spike | reorg."""

    at: int
    when: str
    later: float = 0.0
    method: str = ""
    trouble: str = ""
    deadly: bool = True


@dataclass
class Gate:
    """One payer's way to the chain. `raw`: the transactions that came by; `asked`: methods, a batch by its first."""

    chain_url: str
    kill: Kill | None
    url: str = ""
    asked: list[str] = field(default_factory=list)
    raw: list[str] = field(default_factory=list)
    hit: bool = False
    _pid: int = 0
    _known: threading.Event = field(default_factory=threading.Event)

    def let_in(self, pid: int | None) -> None:
        assert pid
        self._pid = pid
        self._known.set()

    def pass_on(self, body: bytes) -> tuple[bytes | None, float | None]:
        """(the answer, or None for none; seconds after which to kill)."""
        question = json.loads(body)
        method = question["method"] if isinstance(question, dict) else question[0]["method"]
        self.asked.append(method)
        if method == SEND:
            self.raw.append(question["params"][0])
        kill = self.kill if self._is_now(method) else None
        if kill is None:
            return self._forward(body), None
        self.hit = True
        if kill.when == "before":
            self._trouble(kill, question)
            self._end(kill)
            return (None, None) if kill.deadly else (self._forward(body), None)
        answer = self._forward(body)
        self._trouble(kill, question)
        if kill.when == "answered":
            return answer, kill.later if kill.deadly else None
        self._end(kill)
        return (None, None) if kill.deadly else (answer, None)

    def _is_now(self, method: str) -> bool:
        if self.kill is None or self.hit or (self.kill.method and self.kill.method != method):
            return False
        count = self.asked.count(method) if self.kill.method else len(self.asked)
        return count == self.kill.at

    def _forward(self, body: bytes) -> bytes:
        request = urllib.request.Request(self.chain_url, body, {"Content-Type": "application/json"})
        with _NO_PROXY.open(request, timeout=20) as answer:
            found: bytes = answer.read()
        return found

    def _trouble(self, kill: Kill, question: Any) -> None:
        if kill.trouble == "spike":
            base = int(chain.call(self.chain_url, "eth_getBlockByNumber", "latest", False)["baseFeePerGas"], 16)
            chain.call(self.chain_url, "anvil_setNextBlockBaseFeePerGas", hex(10 * base + 10**10))
        elif kill.trouble == "reorg":
            chain.call(self.chain_url, "anvil_reorg", 1, [])
        elif kill.trouble == "drop":
            chain.call(self.chain_url, "anvil_dropAllTransactions")

    def _end(self, kill: Kill) -> None:
        if kill.deadly:
            self.kill_now()

    def kill_now(self) -> None:
        self._known.wait(10)
        with contextlib.suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)


@contextlib.contextmanager
def standing(gate: Gate) -> Iterator[Gate]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        wbufsize = -1
        disable_nagle_algorithm = True

        def do_POST(self) -> None:
            answer, later = gate.pass_on(self.rfile.read(int(self.headers["Content-Length"])))
            if answer is None:
                self.close_connection = True
                return
            with contextlib.suppress(ConnectionError):
                self.send_response(200)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)
                self.wfile.flush()
            if later is not None:
                time.sleep(later)
                gate.kill_now()

        def log_message(self, format: str, *args: object) -> None: ...

    class Server(ThreadingHTTPServer):
        daemon_threads = True

        def handle_error(self, request: object, client_address: object) -> None:
            """The other end was killed in the middle of a question."""

    with Server(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        gate.url = f"http://127.0.0.1:{server.server_address[1]}"
        try:
            yield gate
        finally:
            server.shutdown()
            thread.join()
