"""What a chain node may answer instead of an answer, and what it means in our words."""
from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from orchestrator.chain.rpc import Rpc
from orchestrator.errors import BadInput, NoFunds, OutcomeUnknown, Refused, Unreachable
from tests.fakes.labchain import Lab, a_word, free_port, lab
from tests.fakes.outbox import MemoryOutbox
from tests.fakes.wires import http_server

pytestmark = pytest.mark.money
WHO = "0x" + "11" * 20


def ok(question: dict[str, Any], result: Any) -> Any:
    return 200, "application/json", json.dumps({"jsonrpc": "2.0", "id": question["id"], "result": result}).encode()


def no(question: dict[str, Any], message: str, code: int = -32000) -> Any:
    error = {"code": code, "message": message}
    return 200, "application/json", json.dumps({"jsonrpc": "2.0", "id": question["id"], "error": error}).encode()


@pytest.mark.parametrize(("answer", "kind", "words"), [
    ((200, "text/html", b"<html>log in to the hotel's network</html>"), Unreachable, "does not answer in JSON"),
    ((200, "application/json", b'["what"]'), Unreachable, "answers as no chain node does"),
    ((200, "application/json", b'{"jsonrpc":"2.0","id":0,"result":"many"}'), Unreachable, "as no chain node does"),
    ((403, "text/html", b"key please"), Refused, "refuses: HTTP 403"),
    ((302, "text/html", b""), Unreachable, "does not answer: TooManyRedirects"),
    ((429, "text/plain", b"slowly"), Unreachable, "HTTP 429"),
    ((503, "text/plain", b""), Unreachable, "HTTP 503"),
    (None, Unreachable, "does not answer: ConnectionError"),
])
def test_no_answer_at_all(answer: Any, kind: type[Exception], words: str) -> None:
    with http_server(lambda _: answer) as url:
        with pytest.raises(kind, match=words) as problem:
            Rpc(url + "/v2/secret-key").balance(WHO)
    assert "secret-key" not in str(problem.value) + str(problem.value.__cause__) and problem.value.__suppress_context__


def test_a_broken_connection_is_tried_again_for_reads_only() -> None:
    asked: list[str] = []

    def answer(question: dict[str, Any]) -> Any:
        asked.append(question["method"])
        return ok(question, "0x5") if asked == ["eth_getBalance"] * 3 else None

    with http_server(answer) as url:
        assert Rpc(url).balance(WHO) == 5
        with pytest.raises(OutcomeUnknown, match="no clear answer"):
            Rpc(url).broadcast(b"\x02bytes")
    assert asked.count("eth_sendRawTransaction") == 1


@pytest.mark.parametrize(("text", "verdict"), [
    ("already known", "known"), ("transaction already imported", "known"), ("nonce too low: next nonce 3", "nonce"),
    ("replacement transaction underpriced", "fee"), ("max fee per gas less than block base fee: address 0x", "fee"),
    ("transaction gas price below minimum: gas tip cap 1, minimum needed 25000000000", "fee"),
    ("insufficient funds for gas * price + value", NoFunds), ("internal error", OutcomeUnknown),
])
def test_what_a_node_says_to_a_transaction(text: str, verdict: Any) -> None:
    with http_server(lambda question: no(question, text)) as url:
        if isinstance(verdict, str):
            assert Rpc(url).broadcast(b"\x02") == verdict
        else:
            with pytest.raises(verdict):
                Rpc(url).broadcast(b"\x02")


def test_polygons_long_headers_and_a_node_without_pending_blocks() -> None:
    block = {"number": "0x10", "timestamp": "0x20", "baseFeePerGas": "0x30", "extraData": "0x" + "ab" * 97}
    with http_server(lambda q: ok(q, block if q["params"][0] == "latest" else None)) as url:
        assert Rpc(url).block().timestamp == 0x20
        with pytest.raises(Unreachable):
            Rpc(url).block("pending")


def test_ranges_of_logs_are_halved_until_the_node_takes_them() -> None:
    asked: list[tuple[int, int]] = []

    def answer(question: dict[str, Any]) -> Any:
        first, last = (int(question["params"][0][name], 16) for name in ("fromBlock", "toBlock"))
        asked.append((first, last))
        if last - first >= 3:
            return no(question, "query exceeds max block range 3")
        log = {"transactionHash": "0x" + f"{first:064x}", "address": WHO, "topics": [], "data": "0x",
               "blockNumber": hex(first), "blockHash": "0x" + "01" * 32, "logIndex": "0x0",
               "transactionIndex": "0x0", "removed": False}
        return ok(question, [log])

    with http_server(answer) as url:
        found = Rpc(url).logs(WHO, ["0x" + "02" * 32], 0, 9)
    assert [int(one, 16) for one in found] == [0, 3, 5, 8] and len(asked) == 7
    with http_server(lambda question: no(question, "no logs today")) as url:
        with pytest.raises(Unreachable, match="no logs today"):
            Rpc(url).logs(WHO, ["0x" + "02" * 32], 0, 1)


def test_a_nodes_words_are_cleaned() -> None:
    with http_server(lambda question: no(question, "bad\n\x1b[31mthing" + "x" * 500)) as url:
        with pytest.raises(Unreachable) as problem:
            Rpc(url).balance(WHO)
    assert str(problem.value).isprintable() and len(str(problem.value)) < 300


def test_nobody_there() -> None:
    with pytest.raises(Unreachable, match=r"chain node 127\.0\.0\.1 does not answer"):
        Rpc(f"http://127.0.0.1:{free_port()}").chain_id()


@pytest.mark.parametrize("url", ["http://example.com", "ftp://127.0.0.1", "127.0.0.1:8545", "", "https://", "http://[::1",
                                 "file:///x"])
def test_addresses_that_are_not_taken(url: str) -> None:
    with pytest.raises(BadInput):
        Rpc(url)


def test_addresses_that_are() -> None:
    for url in ("https://example.com/v2/key", "http://127.0.0.1:8545", "http://localhost:1", "http://[::1]:8545"):
        assert Rpc(url).name


# ---- is it our contract ----


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab("anvil", tmp_path_factory.mktemp("anvil")) as found:
        yield found


def test_another_contract_another_token_another_chain(world: Lab) -> None:
    facts = world.facts
    assert world.escrow(MemoryOutbox()).facts() == facts
    for wrong, words in (
        (replace(facts, chain_id=137), "is on chain 31337, not 137"),
        (replace(facts, escrow=facts.token), "is not the escrow that this version knows"),
        (replace(facts, escrow=WHO), "no contract at"),
        (replace(facts, token=WHO), "takes the token"),
    ):
        escrow = world.escrow(MemoryOutbox(), facts=wrong)
        for ask in (escrow.facts, escrow.open_rentals, escrow.credit, escrow.withdraw):
            with pytest.raises(Refused, match=words):
                ask()
        with pytest.raises(Refused, match=words):
            escrow.view(a_word())
