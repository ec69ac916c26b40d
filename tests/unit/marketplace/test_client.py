"""The HTTP border against servers that mean no good: real sockets, no patience."""
from __future__ import annotations

import json
import socket
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.errors import BadInput, SealtuneError, Unreachable
from orchestrator.marketplace.open_market.client import MOST_BYTES, Api, ApiRefusal, checked
from orchestrator.marketplace.open_market.wire import INFO, Info

GOOD = {"versions": [1], "name": "lab", "chain_id": 1, "escrow": "0x" + "e5" * 20, "token": "0x" + "05" * 20, "time": 9}


@contextmanager
def server(answer: Callable[[socket.socket], None]) -> Iterator[str]:
    """Accepts, reads one request's head, lets `answer` do as it likes."""
    listening = socket.create_server(("127.0.0.1", 0))

    def serve() -> None:
        line, _ = listening.accept()
        with line:
            line.recv(65_536)
            with suppress(OSError):      # the client has had enough
                answer(line)

    thread = threading.Thread(target=serve)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}"
    finally:
        thread.join(10)
        listening.close()


def reply(status: int, body: bytes, extra: str = "") -> Callable[[socket.socket], None]:
    head = f"HTTP/1.1 {status} x\r\ncontent-length: {len(body)}\r\nconnection: close\r\n{extra}\r\n".encode()
    return lambda line: line.sendall(head + body)


def ask(url: str, deadline: float = 5) -> Info:
    return Api(url, lambda *_: {}, deadline).get(INFO, Info)


def test_a_good_answer() -> None:
    with server(reply(200, json.dumps({**GOOD, "from the future": [1]}).encode())) as url:
        assert ask(url).chain_id == 1


@pytest.mark.parametrize("body", [
    b"", b"[]", b"{", b'{"a": 1.5}', b'{"versions": [1], "versions": [2]}', b"[" * 10_000, b"<html></html>", b"\xff",
    json.dumps({**GOOD, "chain_id": "1"}).encode(), json.dumps({**GOOD, "escrow": "0x12"}).encode(),
    json.dumps({**GOOD, "time": True}).encode(),
])
def test_outside_the_protocol(body: bytes) -> None:
    with server(reply(200, body)) as url, pytest.raises(Unreachable, match="outside the market protocol"):
        ask(url)


@pytest.mark.parametrize(("status", "extra"), [(500, ""), (429, ""), (503, "")])
def test_not_now(status: int, extra: str) -> None:
    with server(reply(status, b"x", extra)) as url, pytest.raises(Unreachable, match=str(status)):
        ask(url)


def test_no_redirect_is_followed() -> None:
    with server(reply(302, b"", "location: http://127.0.0.1:1/\r\n")) as url, pytest.raises(ApiRefusal) as no:
        ask(url)
    assert no.value.status == 302


def test_a_problem_document_is_read_and_sanitised() -> None:
    body = json.dumps({"status": 409, "code": "busy", "detail": "in\x1b[31m use\n"}).encode()
    with server(reply(409, body)) as url, pytest.raises(ApiRefusal) as no:
        ask(url)
    assert (no.value.code, str(no.value)) == ("busy", "busy: in?[31m use")


def test_too_much() -> None:
    def flood(line: socket.socket) -> None:
        line.sendall(b"HTTP/1.1 200 x\r\nconnection: close\r\n\r\n")
        for _ in range(4 * MOST_BYTES // 65_536):
            line.sendall(b" " * 65_536)

    with server(flood) as url, pytest.raises(Unreachable, match="more than"):
        ask(url)


def test_compression_is_not_unpacked() -> None:
    with server(reply(200, b"x", "content-encoding: gzip\r\n")) as url, pytest.raises(Unreachable, match="compressed"):
        ask(url)


@pytest.mark.parametrize("first", [b"", b"HTTP/1.1 200 x\r\n", b"HTTP/1.1 200 x\r\ncontent-length: 9999\r\n\r\n"])
def test_a_drip_ends_at_the_deadline(first: bytes) -> None:
    """Never silent for long enough to trip a read timeout, and still over in time."""
    def drip(line: socket.socket) -> None:
        line.sendall(first)
        for _ in range(100):
            line.sendall(b"x")
            time.sleep(0.02)

    began = time.monotonic()
    with server(drip) as url, pytest.raises(Unreachable, match="took too long"):
        ask(url, deadline=0.5)
    assert time.monotonic() - began < 2


def test_nobody_there() -> None:
    with pytest.raises(Unreachable, match="did not answer"):
        ask("http://127.0.0.1:1")


@pytest.mark.parametrize("url", ["http://example.com", "ftp://x", "https://", "", "http://127.0.0.1.example.com", "https://u:p@x",
                                 "https://x:99999", "https://x/?q=1", "http://[::2]/"])
def test_addresses_that_are_refused(url: str) -> None:
    with pytest.raises(BadInput) as no:
        checked(url)
    assert "u:p" not in str(no.value)


def test_addresses_that_are_not() -> None:
    assert checked("http://127.0.0.1:8080") and checked("http://localhost") and checked("http://[::1]:1")
    assert not checked("https://market.example/base")


@settings(deadline=None)
@given(st.binary(max_size=300))
def test_any_bytes_are_an_answer_or_one_of_our_errors(data: bytes) -> None:
    api = Api("https://x.example", lambda *_: {})
    try:
        api._read(Info, data)
    except SealtuneError as problem:
        assert str(problem).isprintable()
