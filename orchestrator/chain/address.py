"""Addresses of chain nodes: which are taken, what of them may be shown, and how one is spoken to.

https, or http on this computer. What comes back is bounded in size, depth and time; reads are repeated when a connection
broke, a transaction never is. web3 is imported when an address is first spoken to.
"""
from __future__ import annotations

import time
import urllib.parse
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from ..domain.document import must_be_shallow
from ..errors import BadInput

if TYPE_CHECKING:
    from web3 import HTTPProvider
    from web3.types import RPCResponse

DEPTH = 32                               # of an answer's JSON
MOST_BYTES = 32 * 1024 * 1024            # of an answer
CONNECT_S, ANSWER_S, WHOLE_ANSWER_S = 4, 10, 25
SETTINGS_HINT = "check the chain's address in your settings"
_LOOPBACK = ("127.0.0.1", "::1", "localhost")
# What may be asked again when the connection broke. eth_sendRawTransaction is web3's own choice, not ours.
_READS = ("eth_chainId", "eth_getBalance", "eth_getCode", "eth_getBlockByNumber", "eth_getTransactionReceipt",
          "eth_getTransactionCount", "eth_call", "eth_estimateGas", "eth_getLogs", "eth_feeHistory")


def checked(urls: str | Sequence[str]) -> tuple[str, ...]:
    """The addresses, each once. BadInput: none, or one that is neither https nor on this computer."""
    found = tuple(dict.fromkeys([urls] if isinstance(urls, str) else urls))
    if not found:
        raise BadInput("the chain has no address", hint=SETTINGS_HINT)
    for url in found:
        _check(url)
    return found


def names(urls: Sequence[str]) -> str:
    """Whom we speak to, without what in an address may be a key."""
    return ", ".join(dict.fromkeys(map(host, urls)))


def _check(url: str) -> None:
    try:
        parts = urllib.parse.urlsplit(url)
    except ValueError:
        raise BadInput("the chain's address is no url") from None
    if not (parts.hostname and (parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK))):
        raise BadInput(f"the chain's address must be https, or http on this computer: {parts.scheme}://{parts.hostname}",
                       hint=SETTINGS_HINT)


def host(url: str) -> str:
    return urllib.parse.urlsplit(url).hostname or ""


def provider(url: str) -> HTTPProvider:
    import requests
    from web3 import HTTPProvider
    from web3.providers.rpc.utils import ExceptionRetryConfiguration

    session = requests.Session()
    session.max_redirects = 0            # an answer from elsewhere is none
    session.trust_env = host(url) not in _LOOPBACK
    bounded = _bounded()
    session.mount("http://", bounded)
    session.mount("https://", bounded)
    retry = ExceptionRetryConfiguration(errors=[requests.ConnectionError], retries=3, backoff_factor=0.1,
                                        method_allowlist=_READS)

    class Shallow(HTTPProvider):
        """An answer nested too deep is no answer: web3's libraries lift Python's recursion limit, and the decoder would
        overflow its stack and take the process with it."""

        @staticmethod
        def decode_rpc_response(raw_response: bytes) -> RPCResponse:
            must_be_shallow(raw_response, DEPTH)
            return HTTPProvider.decode_rpc_response(raw_response)

    return Shallow(url, request_kwargs={"timeout": (CONNECT_S, ANSWER_S)}, session=session,
                   exception_retry_configuration=retry)


def _bounded() -> Any:
    """An adapter of requests that reads an answer up to a size and within a time, however slowly it drips."""
    from requests.adapters import HTTPAdapter
    from requests.exceptions import ChunkedEncodingError, ReadTimeout
    from urllib3.exceptions import HTTPError as Broken

    class Bounded(HTTPAdapter):
        def send(self, *arguments: Any, **named: Any) -> Any:
            until = time.monotonic() + WHOLE_ANSWER_S
            answer = super().send(*arguments, **{**named, "stream": True})
            parts, size = [], 0
            try:
                while part := answer.raw.read1(65_536, decode_content=True):
                    parts.append(part)
                    size += len(part)
                    if size > MOST_BYTES or time.monotonic() > until:
                        answer.close()
                        raise ReadTimeout("the answer does not end")
            except Broken as broken:
                raise ChunkedEncodingError(type(broken).__name__) from None
            answer._content, answer._content_consumed = b"".join(parts), True
            answer.raw.release_conn()
            return answer

    return Bounded()
