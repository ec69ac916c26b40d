"""Several nodes of one chain: one is down, lags, lies, answers HTML or belongs elsewhere; nothing is paid twice."""
from __future__ import annotations

import contextlib
import json
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from orchestrator.chain.bulk import BulkSender
from orchestrator.chain.escrow import ChainEscrow
from orchestrator.chain.fees import GWEI, Policy
from orchestrator.chain.rpc import Rpc
from orchestrator.errors import OutcomeUnknown, Unreachable
from tests.fakes.labchain import NO_FEE, Lab, a_key, an_access_hash, free_port, lab
from tests.fakes.outbox import MemoryOutbox
from tests.fakes.wires import Answer, Wire, http_server

pytestmark = pytest.mark.money
DEPOSIT = 66_667
Change = Callable[[dict[str, Any], Any], Any]
LOST: Any = object()                     # of a change: the connection is cut


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab("anvil", tmp_path_factory.mktemp("anvil")) as found:
        yield found


class Odd(Wire):
    """A node that changes some of the chain's answers. `asked`: by method."""

    def __init__(self, url: str, change: Change) -> None:
        super().__init__(url)
        self._change, self.asked = change, list[str]()

    def __call__(self, question: dict[str, Any]) -> Answer | None:
        self.asked.append(question["method"])
        given = super().__call__(question)
        if given is None:
            return None
        tree = json.loads(given[2])
        changed = self._change(question, tree.get("result"))
        if changed is LOST:
            return None
        if isinstance(changed, bytes):
            return 200, "text/html", changed
        return self._json(question, {"result": changed} if "result" in tree else {"error": tree["error"]})


def honest(question: dict[str, Any], answer: Any) -> Any:
    return answer


def only(method: str, change: Callable[[Any], Any]) -> Change:
    return lambda question, answer: change(answer) if question["method"] == method else answer


@contextlib.contextmanager
def standing(world: Lab, *changes: Change) -> Iterator[tuple[list[str], list[Odd]]]:
    """Nodes before one chain: their addresses, and they themselves."""
    nodes = [Odd(world.url, change) for change in changes]
    with contextlib.ExitStack() as stack:
        yield [stack.enter_context(http_server(node)) for node in nodes], nodes


class Deposit:
    def __init__(self, world: Lab) -> None:
        self.world, self.key, self.outbox = world, a_key(), MemoryOutbox()
        self.quote, self.before = world.quote(**NO_FEE), world.usdc(world.renter.address)

    def make(self, urls: list[str], wait_s: float = 1) -> Any:
        return self.escrow(urls, wait_s).create(self.key, *self.quote, 600, DEPOSIT, an_access_hash())

    def escrow(self, urls: list[str], wait_s: float = 1) -> ChainEscrow:
        rpc, me = Rpc(urls, self.world.facts.chain_id), self.world.renter
        sender = BulkSender(rpc, me, self.outbox, self.world.facts.chain_id, Policy(0, GWEI, 0), wait_s)
        return ChainEscrow(rpc, me, self.outbox, self.world.facts, sender)

    @property
    def paid(self) -> int:
        return self.before - self.world.usdc(self.world.renter.address)

    @property
    def attempts(self) -> int:
        return sum(len(rows) for (_, key), rows in self.outbox.kept.items() if key.startswith("create:"))


def html(question: dict[str, Any], answer: Any) -> Any:
    return b"<html>log in to the hotel's network</html>"


def cut(question: dict[str, Any], answer: Any) -> Any:
    return LOST


BAD: list[tuple[str, Change]] = [
    ("down", cut),
    ("answers HTML", html),
    ("another chain", only("eth_chainId", lambda _: "0x89")),
    ("times out after broadcast", only("eth_sendRawTransaction", lambda _: LOST)),
    ("behind", lambda q, a: stale(q, a)),
    ("nonsense", lambda _, __: {"what": []}),
]


def stale(question: dict[str, Any], answer: Any) -> Any:
    """As a node that stopped following the chain: an old block, no receipt."""
    if question["method"] == "eth_getBlockByNumber" and answer:
        return {**answer, "timestamp": hex(int(time.time()) - 3600)}
    return None if question["method"] == "eth_getTransactionReceipt" else answer


@pytest.mark.parametrize("change", [case[1] for case in BAD], ids=[case[0] for case in BAD])
@pytest.mark.parametrize("first", [True, False])
def test_one_bad_node_of_two_does_not_matter(world: Lab, change: Change, first: bool) -> None:
    with standing(world, *([change, honest] if first else [honest, change])) as (urls, _):
        deposit = Deposit(world)
        assert deposit.make(urls).status == "funded"
        assert deposit.make(urls).status == "funded"
    assert (deposit.paid, deposit.attempts) == (DEPOSIT, 1)


def test_nobody_listens_at_the_first_address(world: Lab) -> None:
    deposit = Deposit(world)
    assert deposit.make([f"http://127.0.0.1:{free_port()}", world.url]).status == "funded"
    with pytest.raises(Unreachable, match=r"chain node 127\.0\.0\.1, localhost does not answer"):
        Rpc([f"http://127.0.0.1:{free_port()}", f"http://localhost:{free_port()}"]).balance(world.renter.address)


def test_a_failed_node_is_left_alone_for_a_while(world: Lab) -> None:
    with standing(world, html, honest) as (urls, (bad, good)):
        rpc = Rpc(urls)
        for _ in range(5):
            rpc.balance(world.renter.address)
    assert bad.asked.count("eth_getBalance") == 0 and good.asked.count("eth_getBalance") == 5


def invented(hash: str) -> Any:
    return {"transactionHash": hash, "blockNumber": "0x1", "blockHash": "0x" + "12" * 32, "status": "0x1", "gasUsed": "0x1",
            "effectiveGasPrice": "0x1", "transactionIndex": "0x0", "cumulativeGasUsed": "0x1", "logs": [], "type": "0x2",
            "from": "0x" + "11" * 20, "to": None, "contractAddress": None, "logsBloom": "0x" + "00" * 256}


def liar(question: dict[str, Any], answer: Any) -> Any:
    """Says that every transaction is in a block."""
    return invented(question["params"][0]) if question["method"] == "eth_getTransactionReceipt" else answer


class Swallowing(Odd):
    """Takes transactions and keeps them for itself."""

    def __call__(self, question: dict[str, Any]) -> Answer | None:
        if question["method"] == "eth_sendRawTransaction":
            self.sent.append(question["params"][0])
            return self._json(question, {"result": "0x" + "00" * 32})
        return super().__call__(question)


def test_success_that_others_do_not_know_is_not_believed(world: Lab) -> None:
    """Of two who contradict each other nobody is believed, of three the two; a liar alone does not get past the escrow."""
    with standing(world, liar, only("eth_getTransactionReceipt", lambda _: None)) as (urls, _):
        deposit = Deposit(world)
        with pytest.raises(OutcomeUnknown, match="2 chain nodes disagree whether a transaction is in a block"):
            deposit.make(urls)
    with standing(world, liar, honest, honest) as (urls, _):
        assert deposit.make(urls).status == "funded"
    assert (deposit.paid, deposit.attempts) == (DEPOSIT, 1)


def test_one_node_alone_that_lies_about_success(world: Lab) -> None:
    """A receipt is not believed before the account's count has passed the nonce; nor is a deposit without its rental."""
    deposit, swallowing = Deposit(world), Swallowing(world.url, liar)
    deposit.escrow([world.url])._allow("0x00", DEPOSIT)
    with http_server(swallowing) as url:
        with pytest.raises(OutcomeUnknown, match="was signed but is not in a block yet"):
            deposit.make([url], wait_s=0.2)

    def counting_too(question: dict[str, Any], answer: Any) -> Any:
        if question["method"] == "eth_getTransactionCount":
            return hex(int(answer, 16) + 1)
        return liar(question, answer)

    with http_server(Swallowing(world.url, counting_too)) as url:
        for verb in (deposit.make, lambda urls: deposit.escrow(urls).view(deposit.escrow(urls).rental_id(deposit.key))):
            with pytest.raises(OutcomeUnknown, match=r"has the deposit in a block, but does not show rental 0x"):
                verb([url])
    assert deposit.paid == 0
    assert deposit.make([world.url]).status == "funded"      # the same bytes, at a node that does what it says
    assert (deposit.paid, deposit.attempts) == (DEPOSIT, 1)


def test_a_node_that_swallows_transactions_beside_one_that_does_not(world: Lab) -> None:
    swallowing = Swallowing(world.url, honest)
    with http_server(swallowing) as bad, http_server(Odd(world.url, honest)) as good:
        deposit = Deposit(world)
        assert deposit.make([bad, good]).status == "funded"
    assert deposit.paid == DEPOSIT and len(swallowing.sent) == len(set(swallowing.sent))


def test_a_nonce_that_one_node_calls_free_holds_things_up_and_no_more(world: Lab) -> None:
    """The lower of two counts: what is signed for a used nonce is dead, for one far ahead it would wait for ever."""
    deposit = Deposit(world)
    with standing(world, only("eth_getTransactionCount", lambda _: "0x0"), honest) as (urls, _):
        with pytest.raises(OutcomeUnknown, match="not in a block yet"):
            deposit.make(urls, wait_s=0.2)
    assert deposit.make([world.url]).status == "funded"
    assert (deposit.paid, deposit.attempts) == (DEPOSIT, 1)


def test_a_nonce_that_one_node_calls_used_is_not_given_up(world: Lab) -> None:
    """Or a second transaction would be signed while the first may still happen."""
    def used(question: dict[str, Any], answer: Any) -> Any:
        if question["method"] == "eth_getTransactionCount":
            return "0xffff"
        return None if question["method"] == "eth_getTransactionReceipt" else answer

    deposit = Deposit(world)
    deposit.escrow([world.url])._allow("0x01", DEPOSIT)
    world.rpc("evm_setAutomine", False)
    try:
        with pytest.raises(OutcomeUnknown, match="not in a block yet"):
            deposit.make([world.url], wait_s=0.2)
        with standing(world, used, honest) as (urls, _):
            with pytest.raises(OutcomeUnknown, match="not in a block yet"):
                deposit.make(urls, wait_s=0.2)
    finally:
        world.rpc("evm_setAutomine", True)
        world.rpc("evm_mine")
    assert deposit.make([world.url]).status == "funded"
    assert (deposit.paid, deposit.attempts) == (DEPOSIT, 1)


def test_an_answer_that_does_not_end_is_given_up(world: Lab) -> None:
    with http_server(lambda _: (200, "application/json", b" " * (33 << 20))) as url:
        with pytest.raises(Unreachable, match="ReadTimeout"):
            Rpc(url).balance(world.renter.address)
