"""The border to web3: a chain's nodes behind plain questions, their errors in our words.

Nothing here signs, decides or waits for a block. Reads may be repeated when the connection broke; the one write,
`broadcast`, is sent once, because only its caller knows what a lost answer means. Whom of several nodes one asks, and
when they are believed, is the business of nodes.py. A node is not trusted with anything but the chain itself: its texts
are cut and cleaned, and its address, which may hold a key, is never shown. web3 takes more than a second to import, so
that happens on the first question.
"""
from __future__ import annotations

import contextlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ..domain.text import clean
from ..errors import NoFunds, OutcomeUnknown, Refused, SealtuneError, Unreachable
from . import nodes
from .address import SETTINGS_HINT, checked, names
from .refusals import refusal

if TYPE_CHECKING:
    from web3 import Web3

# No transaction of ours takes less or more, whatever a node says; one that was signed with such figures would be in the way
# of all later ones, and never be mined.
MOST_NONCES, MOST_GAS, LEAST_GAS = 2**40, 2**24, 21_000


@dataclass(frozen=True, slots=True)
class Block:
    number: int
    timestamp: int
    base_fee: int                        # wei


@dataclass(frozen=True, slots=True)
class Receipt:
    hash: str
    block: int
    ok: bool                             # False: mined and reverted; it cost gas and changed nothing
    gas_used: int
    gas_price: int                       # wei, what was paid


class Rpc:
    """A chain by its nodes: one address, or several of the same chain `chain_id` (0: whichever it is).

    Unreachable: no answer, or not in JSON-RPC. Refused: an answer, but not to us."""

    def __init__(self, urls: str | Sequence[str], chain_id: int = 0) -> None:
        self._urls, self._chain_id = checked(urls), chain_id
        self.name = names(self._urls)
        self._w3: Web3 | None = None

    # ---- reads ----

    def chain_id(self) -> int:
        with self._border():
            return int(self._web3.eth.chain_id)

    def block(self, at: int | str = "latest") -> Block:
        """Unreachable where there is no such block: a node that is behind, or that knows no "pending"."""
        with self._border():
            found: Mapping[str, Any] = self._web3.eth.get_block(at)  # type: ignore[arg-type]
            return Block(int(found.get("number") or 0), int(found["timestamp"]), int(found.get("baseFeePerGas") or 0))

    def final(self, depth: int) -> int:
        """Number of the newest block that no reorganisation takes back: the one that the node calls finalized, or `depth`
        below the newest where it knows no such word. Nothing is ever undone where `depth` is 0."""
        if depth:
            with contextlib.suppress(Unreachable, Refused):
                return self.block("finalized").number
        return max(0, self.block().number - depth)

    def code(self, address: str) -> bytes:
        with self._border():
            return bytes(self._web3.eth.get_code(_checksum(address)))

    def balance(self, address: str) -> int:
        """In wei."""
        with self._border():
            return int(self._web3.eth.get_balance(_checksum(address)))

    def nonce(self, address: str, at: int | str = "latest") -> int:
        """Transactions of this account up to a block; "pending" counts those that wait as well."""
        with self._border():
            count = int(self._web3.eth.get_transaction_count(_checksum(address), at))  # type: ignore[arg-type]
            if not 0 <= count < MOST_NONCES:
                raise ValueError(count)
            return count

    def receipt(self, hash: str) -> Receipt | None:
        from web3.exceptions import TransactionNotFound

        with self._border():
            try:
                found: Mapping[str, Any] = self._web3.eth.get_transaction_receipt(hash)  # type: ignore[arg-type]
            except TransactionNotFound:
                return None
            return Receipt(hash, int(found["blockNumber"]), found["status"] == 1, int(found["gasUsed"]),
                           int(found["effectiveGasPrice"]))

    def receipts(self, hashes: Sequence[str]) -> Sequence[Receipt | None]:
        """None where there is none yet, or where the node did not say."""
        with self._border():
            found = self.batch([("eth_getTransactionReceipt", [hash]) for hash in hashes])
            return [_receipt(hash, raw) for hash, raw in zip(hashes, found, strict=True)]

    def tips(self, blocks: int) -> tuple[int, Sequence[int]]:
        """(base fee of the next block, median tip of each of the last blocks that had transactions), in wei."""
        with self._border():
            history: Mapping[str, Any] = self._web3.eth.fee_history(blocks, "latest", [50])
            used = history["gasUsedRatio"]
            paid = [int(row[0]) for row, share in zip(history.get("reward") or [], used, strict=False) if share and row]
            return int(history["baseFeePerGas"][-1]), paid

    def logs(self, address: str, topics: Sequence[str], first: int, last: int) -> Sequence[str]:
        """Hashes of the transactions whose logs fit. Where the node finds the range too long, by halves."""
        from web3.exceptions import Web3RPCError

        query: Any = {"address": _checksum(address), "topics": list(topics), "fromBlock": first, "toBlock": last}
        with self._border():
            try:
                return ["0x" + bytes(log["transactionHash"]).hex() for log in self._web3.eth.get_logs(query)]
            except Web3RPCError:
                if first >= last:
                    raise
        middle = (first + last) // 2
        return [*self.logs(address, topics, first, middle), *self.logs(address, topics, middle + 1, last)]

    def gas_for(self, sender: str, to: str, data: bytes, value: int = 0) -> int:
        """Gas that a call would need in the next block. What the contract says no to is raised as refusals.py says."""
        with self._border():
            call: Any = {"from": _checksum(sender), "to": _checksum(to), "data": data, "value": value}
            return _possible_gas(int(self._web3.eth.estimate_gas(call, "pending")), data)

    def gas_for_each(self, sender: str, calls: Sequence[tuple[str, bytes]]) -> Sequence[int | SealtuneError]:
        """The same for many calls (to, data) in one request, or what stands against each."""
        found = self.batch([("eth_estimateGas", [{"from": sender, "to": to, "data": "0x" + data.hex()}, "pending"])
                            for to, data in calls])
        return [self._gas_or_error(one, data) for one, (_, data) in zip(found, calls, strict=True)]

    def _gas_or_error(self, answer: Any, data: bytes) -> int | SealtuneError:
        if isinstance(answer, SealtuneError):
            return answer
        try:
            with self._border():
                return _possible_gas(int(answer, 16), data)
        except Unreachable as odd:
            return odd

    def batch(self, questions: Sequence[tuple[str, Sequence[Any]]]) -> Sequence[Any]:
        """Reads in one request: each raw answer of JSON-RPC, or the error in its place. Asked one by one where the node
        does not take batches. The parameters are raw as well."""
        with self._border():
            provider: Any = self._web3.provider
            return [self._raw(answer) for answer in provider.make_batch_request(list(questions))]

    def _raw(self, answer: Mapping[str, Any]) -> Any:
        error = answer.get("error")
        if not error:
            return answer.get("result")
        text, data = _said(error.get("message")), error.get("data")
        if "revert" in text or isinstance(data, str):
            return refusal(data if isinstance(data, str) else "", text)
        return Unreachable(f"chain node {self.name} answers: {text}")

    # ---- the one write ----

    def broadcast(self, raw: bytes) -> str:
        """Hand over signed bytes. "taken", "known" (was there), "nonce" (consumed already), "fee" (too low);
        NoFunds when the account cannot pay for it now; OutcomeUnknown for every other answer, or none."""
        from web3.exceptions import Web3RPCError

        try:
            self._web3.eth.send_raw_transaction(raw)
        except Web3RPCError as answer:
            return _verdict(_said(_text_of(answer)))
        except Exception as lost:  # noqa: BLE001 why: the bytes may have arrived, whatever broke afterwards
            raise OutcomeUnknown(f"no clear answer from {self.name} to a transaction: {type(lost).__name__}") from None
        return "taken"

    # ---- contracts ----

    def contract(self, address: str, abi: Sequence[Mapping[str, Any]]) -> Contract:
        return Contract(self, address, self._web3.eth.contract(address=_checksum(address), abi=abi, decode_tuples=True))

    @property
    def _web3(self) -> Web3:
        if self._w3 is None:
            self._w3 = nodes.connect(self._urls, self._chain_id)
        return self._w3

    @contextlib.contextmanager
    def _border(self) -> Iterator[None]:
        """web3's and requests' errors end here. They quote the address, so they are not chained."""
        import requests
        from web3.exceptions import ContractLogicError, Web3Exception, Web3RPCError

        try:
            yield
        except ContractLogicError as no:
            raise refusal(no.data if isinstance(no.data, str) else "", _said(no.message)) from None
        except Web3RPCError as answer:
            raise self._translated(answer) from None
        except requests.HTTPError as answer:
            raise self._by_status(answer.response.status_code if answer.response is not None else 0) from None
        except nodes.Disagree as no:
            raise Unreachable(f"{self.name}: {no}", hint="one of `rpc:` in settings.yaml lags, or lies") from None
        except (json.JSONDecodeError, requests.JSONDecodeError):
            raise Unreachable(f"{self.name} does not answer in JSON", hint=SETTINGS_HINT) from None
        except requests.RequestException as lost:
            raise Unreachable(f"chain node {self.name} does not answer: {type(lost).__name__}",
                              hint=SETTINGS_HINT) from None
        except (Web3Exception, AttributeError, KeyError, TypeError, ValueError) as odd:
            raise Unreachable(f"{self.name} answers as no chain node does: {type(odd).__name__}",
                              hint=SETTINGS_HINT) from None

    def _translated(self, answer: Exception) -> Exception:
        text = _said(_text_of(answer))
        if "insufficient funds" in text:
            return NoFunds(f"the wallet cannot pay the gas: {text}", hint="send it some of the chain's own coin")
        if "method" in text and "not" in text:
            return Refused(f"chain node {self.name} does not offer what is needed: {text}", hint=SETTINGS_HINT)
        return Unreachable(f"chain node {self.name} answers: {text}")

    def _by_status(self, status: int) -> Exception:
        if status == 429 or status >= 500:
            return Unreachable(f"chain node {self.name} answers HTTP {status}")
        return Refused(f"chain node {self.name} refuses: HTTP {status}", hint=SETTINGS_HINT)


class Contract:
    """One contract: read its views, encode its calls. Structs come back as named tuples."""

    def __init__(self, rpc: Rpc, address: str, bound: Any) -> None:
        self._rpc, self.address, self._bound = rpc, address, bound

    def read(self, name: str, *arguments: Any, at: int | str = "latest") -> Any:
        with self._rpc._border():
            return self._bound.functions[name](*arguments).call(block_identifier=at, ccip_read_enabled=False)

    def encode(self, name: str, *arguments: Any) -> bytes:
        """Calldata. ValueError where the arguments do not fit."""
        from web3.exceptions import Web3Exception

        try:
            return bytes.fromhex(str(self._bound.encode_abi(name, list(arguments))).removeprefix("0x"))
        except Web3Exception as why:
            raise ValueError(f"{name} does not take these arguments") from why


def _receipt(hash: str, raw: Any) -> Receipt | None:
    if not isinstance(raw, Mapping) or not raw.get("blockNumber"):
        return None
    return Receipt(hash, int(raw["blockNumber"], 16), int(raw["status"], 16) == 1,
                   int(raw["gasUsed"], 16), int(raw["effectiveGasPrice"], 16))


def _possible_gas(gas: int, data: bytes) -> int:
    """ValueError for what not even its data costs (EIP-7623), or no transaction may cost (EIP-7825)."""
    if not LEAST_GAS + 10 * (4 * len(data) - 3 * data.count(0)) <= gas <= MOST_GAS:
        raise ValueError(gas)
    return gas


def _said(text: object) -> str:
    """A stranger's text, fit for a line of ours."""
    return clean(text) or "nothing"


def _checksum(address: str) -> Any:
    from eth_utils.address import to_checksum_address

    return to_checksum_address(address)


def _text_of(answer: Exception) -> str:
    """What the node said, without what web3 puts around it."""
    response = getattr(answer, "rpc_response", None)
    error = response.get("error") if isinstance(response, Mapping) else None
    said = error.get("message") if isinstance(error, Mapping) else error
    return str(said or getattr(answer, "message", "") or type(answer).__name__)


def _verdict(text: str) -> str:
    said = text.lower()
    if "already known" in said or "already imported" in said or "known transaction" in said:
        return "known"
    if "nonce too low" in said:
        return "nonce"
    if "underpriced" in said or "less than block base fee" in said or "below minimum" in said:
        return "fee"
    if "insufficient funds" in said:
        raise NoFunds(f"the wallet cannot pay the gas: {text}", hint="send it some of the chain's own coin")
    raise OutcomeUnknown(f"the chain node answers to a transaction: {text}")
