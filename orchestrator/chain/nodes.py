"""One chain node or several behind one web3: who is asked what, and when an answer is believed.

    a transaction     its bytes go to every node; however many take them, the chain knows them as one transaction
    receipt, nonce,   every node; believed is what more than half of those say that answer and are not behind: of two
    newest final      both, of three two. Where there is no such half, nothing is believed, and the caller waits or stops
    block
    any other read    the first that answers, in the order of the settings; what it shows of a rental is only believed
                      beside a receipt, and never makes anything be paid again

A node that fails is left alone for a while, one on another chain is passed over. One is behind when its newest
block is older than our clock allows, which no node can make another one look like. One node alone is believed in all of
this: there is nobody to ask. Knows no wallet; waits for no block. web3 is imported on the first question.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

from . import address

if TYPE_CHECKING:
    from web3 import Web3

REST_S = 30                              # for which a node that failed is left alone, and after which all are looked at
OLD_S = 60                               # a newest block of this age: the node is behind
_SEND, _RECEIPT, _NONCE, _BLOCK = ("eth_sendRawTransaction", "eth_getTransactionReceipt", "eth_getTransactionCount",
                                   "eth_getBlockByNumber")
Answer: TypeAlias = Mapping[str, Any]
A = TypeVar("A")


class Disagree(Exception):
    """No answer has more than half of the nodes behind it."""


class Node:
    """One address. A node that cannot be used raises what `_lost` names."""

    def __init__(self, url: str) -> None:
        self._provider: Any = address.provider(url)
        self.wrong, self.behind, self.rests_until = False, False, 0.0

    def ask(self, method: str, parameters: Sequence[Any]) -> Answer:
        return _shaped(self._provider.make_request(method, parameters))

    def ask_many(self, questions: Sequence[tuple[str, Sequence[Any]]]) -> Sequence[Answer]:
        """One by one where the node does not take batches."""
        found = self._provider.make_batch_request(list(questions))
        if isinstance(found, list) and len(found) == len(questions):
            return [_shaped(one) for one in found]
        return [self.ask(method, parameters) for method, parameters in questions]


class Nodes:
    """The nodes of one chain. `chain_id` 0: any, for who only wants to know which it is."""

    def __init__(self, urls: Sequence[str], chain_id: int = 0, clock: Callable[[], float] = time.time) -> None:
        self._all, self._chain_id, self._clock = [Node(url) for url in urls], chain_id, clock
        self._looked_at = float("-inf")

    def ask(self, method: str, parameters: Sequence[Any]) -> Answer:
        if len(self._all) == 1:
            return self._all[0].ask(method, parameters)
        if method == _SEND:
            return _handed_over(self._everybody(lambda node: node.ask(method, parameters)))
        if _is_put_to_all(method, parameters):
            return self._agreed(method, self._everybody(lambda node: node.ask(method, parameters)))
        return self._first(lambda node: node.ask(method, parameters), _is_failure)

    def ask_many(self, questions: Sequence[tuple[str, Sequence[Any]]]) -> Sequence[Answer]:
        if len(self._all) == 1:
            return self._all[0].ask_many(questions)
        if not all(_is_put_to_all(method, parameters) for method, parameters in questions):
            return self._first(lambda node: node.ask_many(questions), lambda many: all(map(_is_failure, many)))
        said = self._everybody(lambda node: node.ask_many(questions))
        return [self._agreed_or_error(method, [(node, many[n]) for node, many in said])
                for n, (method, _) in enumerate(questions)]

    # ---- one of them ----

    def _first(self, ask: Callable[[Node], A], failed: Callable[[A], bool]) -> A:
        refused: list[A] = []
        lost: Exception | None = None
        for node in self._awake():
            try:
                answer = ask(node)
            except _lost() as problem:
                lost = lost or problem
                self._let_rest(node)
                continue
            if not failed(answer):
                return answer
            refused.append(answer)
        if not refused and lost is not None:
            raise lost
        return refused[0]

    # ---- all of them ----

    def _everybody(self, ask: Callable[[Node], A]) -> list[tuple[Node, A]]:
        """Who answered, and what. Raises the first one's error when nobody did."""
        said: list[tuple[Node, A]] = []
        lost: Exception | None = None
        for node in self._awake():
            try:
                said.append((node, ask(node)))
            except _lost() as problem:
                lost = lost or problem
                self._let_rest(node)
        if not said and lost is not None:
            raise lost
        return said

    def _agreed(self, method: str, said: Sequence[tuple[Node, Answer]]) -> Answer:
        votes = [one for one in said if _makes_sense(method, one[1])]
        if not votes:
            return said[0][1]
        if len({_voice(method, answer) for _, answer in votes}) == 1:
            return votes[0][1]
        self._look()
        votes = [one for one in votes if not one[0].behind] or votes
        return _believed(method, [answer for _, answer in votes])

    def _agreed_or_error(self, method: str, said: Sequence[tuple[Node, Answer]]) -> Answer:
        try:
            return self._agreed(method, said)
        except Disagree as no:
            return {"error": {"code": 0, "message": str(no)}}

    # ---- who they are ----

    def _awake(self) -> Sequence[Node]:
        """Whom to ask: those on our chain that did not just fail, the ones that are behind last."""
        if time.monotonic() - self._looked_at > REST_S:
            self._look()
        ours = [node for node in self._all if not node.wrong] or self._all
        awake = [node for node in ours if node.rests_until <= time.monotonic()] or ours
        return sorted(awake, key=lambda node: node.behind)

    def _look(self) -> None:
        """Which chain each node is on, and whether it is behind."""
        self._looked_at = time.monotonic()
        for node in self._all:
            if node.rests_until > time.monotonic():
                continue
            try:
                chain, newest = node.ask_many([("eth_chainId", []), (_BLOCK, ["latest", False])])
                node.wrong = bool(self._chain_id) and int(chain["result"], 16) != self._chain_id
                node.behind = int(newest["result"]["timestamp"], 16) < self._clock() - OLD_S
            except (KeyError, TypeError):
                self._let_rest(node)
            except _lost():
                self._let_rest(node)

    def _let_rest(self, node: Node) -> None:
        node.rests_until = time.monotonic() + REST_S


def connect(urls: Sequence[str], chain_id: int) -> Web3:
    from web3 import Web3
    from web3.middleware import ExtraDataToPOAMiddleware
    from web3.providers.base import JSONBaseProvider

    nodes = Nodes(urls, chain_id)

    class Provider(JSONBaseProvider):
        global_ccip_read_enabled = False

        def make_request(self, method: Any, params: Any) -> Any:
            return nodes.ask(method, params)

        def make_batch_request(self, requests: Any) -> Any:
            return nodes.ask_many(requests)

    w3 = Web3(Provider())
    w3.middleware_onion.inject(ExtraDataToPOAMiddleware, layer=0)     # Polygon's headers are longer than the rule
    w3.middleware_onion.remove("validation")         # asks for the chain id before every call; codecheck.py does once
    return w3


# ---- what an answer is worth ----


def _is_put_to_all(method: str, parameters: Sequence[Any]) -> bool:
    return method in (_RECEIPT, _NONCE) or (method == _BLOCK and parameters[0] == "finalized")


def _voice(method: str, answer: Answer) -> Any:
    """What is compared: of a receipt its block and status, None where there is none yet; of the rest a number."""
    found: Any = answer.get("result")
    if method == _RECEIPT:
        return (str(found["blockHash"]), int(found["status"], 16)) if found and found["blockHash"] else None
    return int(found["number"] if method == _BLOCK else found, 16)


def _makes_sense(method: str, answer: Answer) -> bool:
    try:
        _voice(method, answer)
    except (KeyError, TypeError, ValueError):
        return False
    return not answer.get("error")


def _believed(method: str, votes: Sequence[Answer]) -> Answer:
    """Of receipts the one with more than half behind it; of numbers the highest that more than half have reached."""
    if method != _RECEIPT:
        return sorted(votes, key=lambda answer: _voice(method, answer), reverse=True)[len(votes) // 2]
    for one in votes:
        if 2 * sum(_voice(method, other) == _voice(method, one) for other in votes) > len(votes):
            return one
    raise Disagree(f"{len(votes)} chain nodes disagree whether a transaction is in a block")


def _is_failure(answer: Answer) -> bool:
    """Whether another node may do better: not where the chain itself said no."""
    error = answer.get("error")
    if not isinstance(error, Mapping):
        return bool(error)
    return not (isinstance(error.get("data"), str) or "revert" in str(error.get("message")))


def _handed_over(said: Sequence[tuple[Node, Answer]]) -> Answer:
    """One yes is a yes; otherwise the first no."""
    return next((answer for _, answer in said if not answer.get("error")), said[0][1])


def _shaped(answer: Any) -> Answer:
    if not isinstance(answer, Mapping) or not ("result" in answer or "error" in answer):
        raise ValueError("no answer in JSON-RPC")
    return answer


def _lost() -> tuple[type[Exception], ...]:
    """What a node that cannot be used raises: nobody there, HTTP's no, HTML, nonsense."""
    import requests

    return requests.RequestException, ValueError
