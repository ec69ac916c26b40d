"""One chain node that answers anything at all, at any step of a deposit: a clear error, nothing paid twice, the outbox knows
what is open, and an honest node finishes it."""
from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.chain.rpc import Rpc
from orchestrator.errors import OutcomeUnknown, SealtuneError
from orchestrator.journal.outbox import Outbox
from tests.fakes.labchain import NO_FEE, Lab, a_key, an_access_hash, lab
from tests.fakes.wires import Answer, Wire, http_server

pytestmark = pytest.mark.money
DEPOSIT = 66_667
HTML: Answer = (200, "text/html", b"<html>log in to the hotel's network</html>")
METHODS = ["eth_chainId", "eth_getCode", "eth_call", "eth_getBlockByNumber", "eth_estimateGas", "eth_feeHistory",
           "eth_getBalance", "eth_getTransactionCount", "eth_getTransactionReceipt"]
SOME_JUNK: list[Any] = [{}, "many", 2**300]
JUNK: list[Any] = [None, [], "0x", -1, {"number": [], "status": "yes", "timestamp": None}]


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab("anvil", tmp_path_factory.mktemp("anvil")) as found:
        yield found


@pytest.fixture
def outbox(tmp_path: Path) -> Iterator[Outbox]:
    found = Outbox(tmp_path / "state")
    yield found
    found.close()


class Hostile(Wire):
    """Passes on; what it says to `method` is `says`, a whole answer of HTTP or a result."""

    def __init__(self, url: str, method: str, says: Any) -> None:
        super().__init__(url)
        self._method, self._says = method, says

    def __call__(self, question: dict[str, Any]) -> Answer | None:
        given = super().__call__(question)
        if question["method"] != self._method:
            return given
        if isinstance(self._says, tuple):
            return self._says
        return self._json(question, self._says if isinstance(self._says, dict) and "error" in self._says
                          else {"result": self._says})


class Deposit:
    def __init__(self, world: Lab, outbox: Outbox) -> None:
        self.world, self.outbox, self.key, self.access = world, outbox, a_key(), an_access_hash()
        self.quote, self.before = world.quote(**NO_FEE), world.usdc(world.renter.address)

    def make(self, url: str = "") -> Any:
        escrow = self.world.escrow(self.outbox, url, wait_s=0.1)
        return escrow.create(self.key, *self.quote, 600, DEPOSIT, self.access)

    def finished(self) -> bool:
        """By an honest node; once, whatever was begun before."""
        rental = self.make()
        paid = self.before - self.world.usdc(self.world.renter.address)
        wallet = f"{self.world.facts.chain_id}:{self.world.renter.address}"
        return (rental.status, paid, self.outbox.pending(wallet)) == ("funded", DEPOSIT, [])


def known(outbox: Outbox, wire: Wire, world: Lab) -> None:
    """Everything that reached the node is in the outbox; what is not concluded is pending there."""
    rows = outbox._db.ask("SELECT raw FROM attempts")
    assert set(wire.sent) <= {"0x" + bytes(raw).hex() for raw, in rows}


@pytest.mark.parametrize("method", METHODS)
def test_junk_at_any_step(world: Lab, outbox: Outbox, method: str) -> None:
    junk_at(world, outbox, method, SOME_JUNK)


@pytest.mark.full
@pytest.mark.parametrize("method", METHODS)
def test_more_junk_at_any_step(world: Lab, outbox: Outbox, method: str) -> None:
    junk_at(world, outbox, method, JUNK)


def test_figures_that_would_block_the_wallet_for_good(world: Lab, outbox: Outbox) -> None:
    """A transaction with too little gas for its own data, or more than a block has, is never mined, nor is any after it."""
    junk_at(world, outbox, "eth_estimateGas", ["0x0", "0x5208", "0xffffffff"])
    junk_at(world, outbox, "eth_getTransactionCount", ["0xffffffffffff"])


def junk_at(world: Lab, outbox: Outbox, method: str, answers: list[Any]) -> None:
    for junk in answers:
        deposit, wire = Deposit(world, outbox), Hostile(world.url, method, junk)
        with http_server(wire) as url:
            try:
                deposit.make(url)
            except SealtuneError as problem:
                assert str(problem).isprintable() and "Traceback" not in str(problem)
        known(outbox, wire, world)
        assert deposit.finished(), junk


@pytest.mark.parametrize("says", [
    HTML, (502, "text/html", b"bad gateway"), (429, "text/plain", b"slowly"), (200, "application/json", b"{"),
    (200, "application/json", b"[]"), None, "0x" + "ab" * 32, {}, {"error": {"code": -32000, "message": "internal error"}},
    {"error": "no"}, {"error": {"code": -32000, "message": "nonce too low"}},
    {"error": {"code": -32000, "message": "replacement transaction underpriced"}},
    {"error": {"code": -32000, "message": "insufficient funds for gas * price + value"}},
], ids=str)
def test_whatever_it_says_to_a_transaction_that_it_took(world: Lab, outbox: Outbox, says: Any) -> None:
    deposit, wire = Deposit(world, outbox), Hostile(world.url, "eth_sendRawTransaction", says)
    with http_server(wire) as url:
        assert deposit.make(url).status == "funded"
    known(outbox, wire, world)
    assert deposit.finished()


def test_html_after_the_broadcast(world: Lab, outbox: Outbox) -> None:
    """The hotel's login page comes up between sending and looking."""
    class Later(Hostile):
        def __call__(self, question: dict[str, Any]) -> Answer | None:
            return HTML if self.sent else super().__call__(question)

    deposit = Deposit(world, outbox)
    with http_server(wire := Later(world.url, "", None)) as url:
        with pytest.raises(OutcomeUnknown, match=r"is not in a block yet: 127\.0\.0\.1 does not answer in JSON"):
            deposit.make(url)
    known(outbox, wire, world)
    assert deposit.finished() and len(set(wire.sent)) == 1


@pytest.mark.full
def test_it_hangs_after_the_broadcast(world: Lab, outbox: Outbox) -> None:
    class Hanging(Hostile):
        def __call__(self, question: dict[str, Any]) -> Answer | None:
            given = super().__call__(question)
            if question["method"] == "eth_sendRawTransaction":
                time.sleep(11)
            return given

    deposit, wire = Deposit(world, outbox), Hanging(world.url, "", None)
    with http_server(wire) as url:
        assert deposit.make(url).status == "funded"
    assert deposit.finished() and len(wire.sent) == len(set(wire.sent)) == 2


def test_a_large_and_deep_answer(world: Lab) -> None:
    deep = b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 5000 + b"]" * 5000 + b"}"
    for body in (deep, json.dumps({"id": 1, "result": "0x" + "f" * 200_000}).encode()):
        with http_server(lambda _, body=body: (200, "application/json", body)) as url:  # type: ignore[misc]
            with pytest.raises(SealtuneError):
                Rpc(url).block()
