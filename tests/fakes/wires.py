"""Two things that stand between a client and a chain node: one that loses answers, one that answers nonsense."""
from __future__ import annotations

import contextlib
import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from orchestrator.lab import chain

Answer = tuple[int, str, bytes]          # status, content type, body


@contextlib.contextmanager
def http_server(answer: Callable[[dict[str, Any]], Answer | None]) -> Iterator[str]:
    """The url of a server that asks `answer` for each JSON-RPC question, of a batch too. None: the connection is cut."""

    class Handler(BaseHTTPRequestHandler):
        wbufsize = -1

        def do_POST(self) -> None:
            question = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            found = _of_all([answer(one) for one in question]) if isinstance(question, list) else answer(question)
            if found is None:
                self.close_connection = True
                return
            status, kind, body = found
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            if 300 <= status < 400:
                self.send_header("Location", "http://elsewhere.invalid/")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02})
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def _of_all(answers: list[Answer | None]) -> Answer | None:
    """The answer to a batch: the first that is none or an error of HTTP, or all bodies together."""
    bad = next((a for a in answers if a is None or a[0] != 200 or "json" not in a[1]), (0, "", b""))
    if bad is None or bad[0]:
        return bad
    return 200, "application/json", b"[" + b",".join(a[2] for a in answers if a) + b"]"


class Wire:
    """Passes questions on to a chain. `lose_sends`: the chain gets a transaction, its answer gets lost.
    `dead_after_send`: and from then on nothing gets through, until `alive` is set again."""

    def __init__(self, url: str) -> None:
        self._url, self.lose_sends, self.dead_after_send, self.alive = url, False, False, True
        self.sent: list[str] = []

    def __call__(self, question: dict[str, Any]) -> Answer | None:
        if not self.alive:
            return None
        if question["method"] == "eth_sendRawTransaction":
            self.sent.append(question["params"][0])
            with contextlib.suppress(ValueError):
                chain.call(self._url, question["method"], *question["params"])
            self.alive = not self.dead_after_send
            if self.lose_sends or self.dead_after_send:
                return None
            return self._json(question, {"result": "0x" + "00" * 32})
        try:
            return self._json(question, {"result": chain.call(self._url, question["method"], *question["params"])})
        except ValueError as why:
            return self._json(question, {"error": {"code": -32000, "message": str(why)}})

    @staticmethod
    def _json(question: dict[str, Any], answer: dict[str, Any]) -> Answer:
        body = json.dumps({"jsonrpc": "2.0", "id": question["id"], **answer}).encode()
        return 200, "application/json", body
