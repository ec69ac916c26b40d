"""HTTP with bounds: one client, answers read to a cap and within a deadline, httpx's errors translated here."""
from __future__ import annotations

import time
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ..errors import BadInput, Refused, Unreachable

if TYPE_CHECKING:
    import httpx

SECONDS = 30                             # for one whole answer
LOOPBACK = ("127.0.0.1", "localhost", "::1")


class Answer(Exception):
    """An answer that is not 200; the caller knows what it means for what was asked."""

    def __init__(self, status: int, code: str) -> None:
        super().__init__(f"status {status}")
        self.status, self.code = status, code


class Web:
    """One hub. A token is sent to this hub only, and never over a plain connection that leaves this machine."""

    def __init__(self, endpoint: str, token: str | None = None) -> None:
        parts = urlsplit(endpoint)
        self._local = parts.hostname in LOOPBACK
        if parts.scheme != "https" and not (parts.scheme == "http" and self._local):
            raise BadInput(f"hub {endpoint}: https is needed", hint="correct `hub:` in settings.yaml")
        self.endpoint = endpoint.rstrip("/")
        self._headers = {"authorization": f"Bearer {token}"} if token else {}

    def get(self, path: str, most: int) -> bytes:
        """The body of `path`, at most `most` bytes. Answer: any status but 200. Unreachable; Refused: too large."""
        import httpx
        try:
            with httpx.Client(timeout=10, follow_redirects=True, max_redirects=5, trust_env=not self._local,
                              headers={**self._headers, "accept-encoding": "identity"}) as client:
                with client.stream("GET", f"{self.endpoint}{path}") as response:
                    self._must_be_safe(response)
                    return _read(response, most, path)
        except (httpx.HTTPError, httpx.InvalidURL) as problem:
            raise Unreachable(f"hub {self.endpoint} does not answer: {type(problem).__name__}",
                              hint="check the network, or `hub:` in settings.yaml") from problem

    def _must_be_safe(self, response: httpx.Response) -> None:
        if response.url.scheme != "https" and not self._local:
            raise Unreachable(f"hub {self.endpoint} leads to an address without https")
        if response.status_code == 429 or response.status_code >= 500:
            raise Unreachable(f"hub {self.endpoint} does not serve now: status {response.status_code}")
        if response.status_code != 200:
            raise Answer(response.status_code, response.headers.get("x-error-code", ""))


def _read(response: httpx.Response, most: int, path: str) -> bytes:
    give_up, body = time.monotonic() + SECONDS, bytearray()
    for piece in response.iter_bytes():
        body += piece
        if len(body) > most:
            raise Refused(f"the hub's {path.rsplit('/', 1)[-1][:80]} is larger than {most} bytes, which none should be",
                          hint="choose another model, or check `hub:` in settings.yaml")
        if time.monotonic() > give_up:
            raise Unreachable(f"hub: no whole answer within {SECONDS} s")
    return bytes(body)
