"""The HTTP border of the open market: one bounded request, one strict document or one of our errors.

Plain http goes to loopback only. Every request has a deadline for the whole of it, not only for a silence, and a cap
on what is read. It never retries, follows no redirect, and lets no text of the market through unsanitised.
"""
from __future__ import annotations

import ipaddress
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlencode, urlsplit

from pydantic import ValidationError

from ...domain.document import Json, canonical, parse
from ...errors import BadInput, Unreachable
from .wire import Problem, Wire, first_fault

if TYPE_CHECKING:
    import httpx

W = TypeVar("W", bound=Wire)
Signer = Callable[[str, str, bytes, str], Mapping[str, str]]

MOST_BYTES = 1 << 20
MOST_VALUES = 20_000
DEADLINE = 20                            # seconds for one whole request


class ApiRefusal(Exception):
    """The market understood and said no. Never leaves this folder."""

    def __init__(self, status: int, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.status, self.code = status, code


class Api:
    """`sign` makes the headers of a request about a rental: (method, path, body, rental id) → headers."""

    def __init__(self, url: str, sign: Signer, deadline: float = DEADLINE) -> None:
        self.url = url.rstrip("/")
        self._loopback = checked(self.url)
        self._sign, self._deadline = sign, deadline

    def get(self, path: str, model: type[W], query: Mapping[str, str] | None = None, rental_id: str = "") -> W:
        """Unreachable when nobody answers sensibly, ApiRefusal for a 4xx."""
        where = f"{path}?{urlencode(query)}" if query else path
        return self._read(model, self._request("GET", where, b"", self._headers("GET", path, b"", rental_id)))

    def send(self, method: str, path: str, tree: Json, model: type[W], rental_id: str = "") -> W:
        body = canonical(tree)
        return self._read(model, self._request(method, path, body, self._headers(method, path, body, rental_id)))

    def _headers(self, method: str, path: str, body: bytes, rental_id: str) -> dict[str, str]:
        signed = dict(self._sign(method, path, body, rental_id)) if rental_id else {}
        return {"accept": "application/json", "accept-encoding": "identity", **signed}

    def _request(self, method: str, where: str, body: bytes, headers: dict[str, str]) -> bytes:
        if body:
            headers["content-type"] = "application/json"
        with self._answer(method, where, body, headers) as answer:
            data = bounded(answer)
            status = answer.status_code
        if status == 429 or status >= 500:
            raise Unreachable(f"the market at {self.url} answered with {status}")
        if status >= 300:
            raise refusal(status, data)
        return data

    @contextmanager
    def _answer(self, method: str, where: str, body: bytes, headers: dict[str, str]) -> Iterator[httpx.Response]:
        import httpx

        watch = Watchdog(self._deadline)
        try:
            with httpx.Client(timeout=min(10.0, self._deadline), trust_env=not self._loopback) as http, watch:
                with http.stream(method, self.url + where, content=body, headers=headers,
                                 extensions={"trace": watch.trace}) as answer:
                    yield answer
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            said = "took too long" if watch.fired else type(problem).__name__
            raise Unreachable(f"the market at {self.url} did not answer: {said}",
                              hint="check the market's address in your settings, or try again later") from problem

    def _read(self, model: type[W], data: bytes) -> W:
        try:
            return model.model_validate(parse(data, depth=12, values=MOST_VALUES))
        except ValidationError as problem:
            raise Unreachable(f"{self.url} answered outside the market protocol: {first_fault(problem)}") from None
        except ValueError as problem:
            raise Unreachable(f"{self.url} answered outside the market protocol: not JSON as agreed") from problem


def checked(url: str) -> bool:
    """True for a loopback address. BadInput for anything that would send our requests in clear text."""
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname or "", parts.port
    except ValueError:
        raise BadInput(f"not an address of a market: {url!r}", hint="https://…") from None
    if parts.username or parts.password or parts.query or parts.fragment or not host:
        raise BadInput(f"not an address of a market: {parts.scheme}://{host}", hint="https://…")
    loopback = is_loopback(host)
    if parts.scheme == "https" or (parts.scheme == "http" and loopback):
        return loopback
    raise BadInput(f"a market needs https: {parts.scheme}://{host}", hint="https://…")


def is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def bounded(answer: httpx.Response) -> bytes:
    if answer.headers.get("content-encoding", "identity") != "identity":
        raise Unreachable("the market answered compressed, unasked")
    data = bytearray()
    for chunk in answer.iter_raw():
        data += chunk
        if len(data) > MOST_BYTES:
            raise Unreachable(f"the market answered with more than {MOST_BYTES} bytes")
    return bytes(data)


def refusal(status: int, data: bytes) -> ApiRefusal:
    try:
        problem = Problem.model_validate(parse(data))
    except ValueError:                   # pydantic's error is one too
        return ApiRefusal(status, "unknown", f"status {status}")
    return ApiRefusal(status, problem.code, problem.detail)


class Watchdog:
    """Ends a request that drips: at the deadline the connection is shut, whatever it is waiting for."""

    def __init__(self, seconds: float) -> None:
        self.fired = False
        self._stream: Any = None
        self._ends = time.monotonic() + seconds
        self._timer = threading.Timer(seconds, self._fire)
        self._timer.daemon = True

    def __enter__(self) -> Watchdog:
        self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        self._timer.join()

    def trace(self, event: str, info: Mapping[str, Any]) -> None:
        if event in ("connection.connect_tcp.complete", "connection.start_tls.complete"):
            self._stream = info["return_value"]
            if time.monotonic() >= self._ends:
                self._fire()

    def _fire(self) -> None:
        import socket

        self.fired = True
        line = self._stream.get_extra_info("socket") if self._stream else None
        try:
            if line is not None:
                socket.socket.shutdown(line, socket.SHUT_RDWR)
        except OSError:                  # closed already: the request is over
            pass
