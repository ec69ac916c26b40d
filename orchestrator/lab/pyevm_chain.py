"""JSON-RPC on loopback over the chain of pyevm.py: as much of a node as the escrow's client and the lab ask for.

    python -m orchestrator.lab.pyevm_chain FILE PORT

Answers look like geth's, errors included, so that the client cannot tell.
"""
from __future__ import annotations

import json
import signal
import sys
import threading
from collections.abc import Callable, Mapping, Sequence
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from eth_typing import Address

from .pyevm import CHAIN_ID, GAS_LIMIT, NOBODY, Chain, Mined, Refusal

_BODY_MAX = 1024 * 1024


class Methods:
    """One method of JSON-RPC each, by its name with "_" for what stands before it."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self.table: Mapping[str, Callable[..., Any]] = {
            "web3_clientVersion": lambda: "sealtune-lab/py-evm",
            "net_version": lambda: str(CHAIN_ID),
            "eth_accounts": lambda: [],
            "eth_chainId": lambda: hex(CHAIN_ID),
            "eth_gasPrice": lambda: hex(chain.next_base_fee() + 10**9),
            "eth_maxPriorityFeePerGas": lambda: hex(10**9),
            "eth_feeHistory": self._fee_history,
            "eth_blockNumber": lambda: hex(len(chain.headers) - 1),
            "eth_getBlockByNumber": self._block,
            "eth_getBalance": lambda who, at: hex(self._state(at).get_balance(_bytes(who))),
            "eth_getCode": lambda who, at: _hex(self._state(at).get_code(_bytes(who))),
            "eth_getTransactionCount": lambda who, at: hex(self._state(at).get_nonce(_bytes(who))),
            "eth_call": lambda call, at="latest", *_: _hex(self._run(call, at)[0]),
            "eth_estimateGas": lambda call, at="pending", *_: hex(min(GAS_LIMIT, self._run(call, at)[1] * 5 // 4)),
            "eth_sendRawTransaction": lambda raw: _hex(chain.send(_bytes(raw))),
            "eth_getTransactionReceipt": lambda hash: self._found(hash, self._receipt),
            "eth_getTransactionByHash": lambda hash: self._found(hash, self._transaction),
            "eth_getLogs": self._logs,
            "evm_increaseTime": lambda seconds: chain.advance(_int(seconds)),
            "evm_mine": lambda *_: chain.mine(),
            "anvil_setBalance": lambda who, wei: chain.give(_bytes(who), _int(wei)),
        }

    def answer(self, question: Any) -> dict[str, Any]:
        """The whole answer to one question, whatever it is."""
        frame = {"jsonrpc": "2.0", "id": question.get("id") if isinstance(question, dict) else None}
        try:
            method = self.table[question["method"]]
            return {**frame, "result": method(*question.get("params", []))}
        except Refusal as no:
            error: dict[str, Any] = {"code": 3 if no.data else -32000, "message": str(no)}
            return {**frame, "error": {**error, "data": no.data} if no.data else error}
        except KeyError as what:
            return {**frame, "error": {"code": -32601, "message": f"method {what} not found"}}
        except (TypeError, ValueError, IndexError, AttributeError) as why:
            return {**frame, "error": {"code": -32602, "message": f"invalid params: {type(why).__name__}"}}

    def _state(self, at: Any) -> Any:
        """Only the newest state is kept; asked for an older one, a node that prunes says so."""
        if at not in ("latest", "pending", "safe", "finalized") and _int(at) != len(self._chain.headers) - 1:
            raise Refusal("missing trie node: this chain keeps the newest state only")
        return self._chain.state()

    def _run(self, call: Mapping[str, str], at: Any) -> tuple[bytes, int]:
        self._state(at)
        data = call.get("data") or call.get("input") or "0x"
        sender = Address(_bytes(call.get("from") or _hex(NOBODY)))
        return self._chain.run(sender, _bytes(call.get("to") or "0x"), _bytes(data), _int(call.get("value", "0x0")),
                               at == "pending")

    def _fee_history(self, count: Any, newest: Any, percentiles: Sequence[int] = ()) -> dict[str, Any]:
        headers = self._chain.headers[-_int(count):]
        return {"oldestBlock": hex(len(self._chain.headers) - len(headers)),
                "baseFeePerGas": [hex(h.base_fee_per_gas or 0) for h in headers] + [hex(self._chain.next_base_fee())],
                "gasUsedRatio": [h.gas_used / h.gas_limit for h in headers],
                "reward": [[hex(10**9) for _ in percentiles] for _ in headers]}

    def _block(self, at: Any, full: bool = False) -> dict[str, Any] | None:
        headers = self._chain.headers
        if at == "pending":
            return {"number": hex(len(headers)), "timestamp": hex(self._chain.pending_time), "transactions": [],
                    "baseFeePerGas": hex(self._chain.next_base_fee()), "gasLimit": hex(GAS_LIMIT)}
        number = {"latest": len(headers) - 1, "earliest": 0}.get(at, max(0, len(headers) - 3)) \
            if isinstance(at, str) and not at.startswith("0x") else _int(at)
        if number >= len(headers):
            return None
        header = headers[number]
        return {"number": hex(number), "hash": _hex(header.hash), "parentHash": _hex(header.parent_hash),
                "timestamp": hex(header.timestamp), "baseFeePerGas": hex(header.base_fee_per_gas or 0),
                "gasLimit": hex(header.gas_limit), "gasUsed": hex(header.gas_used), "extraData": "0x",
                "stateRoot": _hex(header.state_root), "miner": _hex(header.coinbase), "transactions": []}

    def _found(self, hash: str, shape: Callable[[Mined], dict[str, Any]]) -> dict[str, Any] | None:
        mined = self._chain.mined(_bytes(hash))
        return shape(mined) if mined else None

    def _place(self, mined: Mined) -> dict[str, Any]:
        return {"blockNumber": hex(mined.header.block_number), "blockHash": _hex(mined.header.hash),
                "transactionIndex": "0x0"}

    def _transaction(self, mined: Mined) -> dict[str, Any]:
        one = mined.transaction
        return {**self._place(mined), "hash": _hex(one.hash), "nonce": hex(one.nonce), "from": _hex(one.sender),
                "to": _hex(one.to) if one.to else None, "value": hex(one.value), "input": _hex(one.data),
                "gas": hex(one.gas)}

    def _receipt(self, mined: Mined) -> dict[str, Any]:
        one, base = mined.transaction, mined.header.base_fee_per_gas or 0
        most = getattr(one, "max_fee_per_gas", None)
        price = one.gas_price if most is None else min(most, base + one.max_priority_fee_per_gas)
        used = hex(mined.header.gas_used)
        return {**self._place(mined), "transactionHash": _hex(one.hash), "from": _hex(one.sender),
                "to": _hex(one.to) if one.to else None, "status": hex(mined.ok), "gasUsed": used,
                "cumulativeGasUsed": used, "effectiveGasPrice": hex(price), "logs": self._logs_of(mined),
                "contractAddress": _hex(mined.contract) if mined.contract else None, "type": "0x2",
                "logsBloom": "0x" + "00" * 256}

    def _logs_of(self, mined: Mined) -> list[dict[str, Any]]:
        return [{**self._place(mined), "transactionHash": _hex(mined.transaction.hash), "address": _hex(log.address),
                 "data": _hex(log.data), "topics": [_hex(t.to_bytes(32, "big")) for t in log.topics],
                 "logIndex": hex(index), "removed": False} for index, log in enumerate(mined.logs)]

    def _logs(self, query: Mapping[str, Any]) -> list[dict[str, Any]]:
        first, last = _int(query["fromBlock"]), _int(query["toBlock"])
        wanted, of = query.get("topics", []), query["address"]
        addresses = {a.lower() for a in (of if isinstance(of, list) else [of])}
        found = [log for mined in self._chain.all_mined() if first <= mined.header.block_number <= last
                 for log in self._logs_of(mined)]
        return [log for log in found if log["address"] in addresses
                and all(w is None or w == t for w, t in zip(wanted, log["topics"], strict=False))]


class Handler(BaseHTTPRequestHandler):
    """One question a request. `methods` and `lock` are set by `serve`."""

    protocol_version = "HTTP/1.1"
    wbufsize = -1                        # one packet an answer, or each waits for the last one to be acknowledged
    methods: Methods
    lock: threading.Lock

    def do_POST(self) -> None:
        size = int(self.headers.get("Content-Length") or 0)
        if not 0 < size <= _BODY_MAX:
            self.send_error(413)
            return
        try:
            question = json.loads(self.rfile.read(size))
        except ValueError:
            question = None
        with self.lock:
            answer = json.dumps(self.methods.answer(question)).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)

    def log_message(self, format: str, *args: Any) -> None:
        """The log is for what goes wrong."""


def serve(file: Path, port: int) -> None:
    """Until SIGTERM."""
    Handler.methods, Handler.lock = Methods(Chain(file)), threading.Lock()
    with ThreadingHTTPServer(("127.0.0.1", port), Handler) as server:
        signal.signal(signal.SIGTERM, lambda *_: threading.Thread(target=server.shutdown).start())
        server.serve_forever(poll_interval=0.1)


def _bytes(text: str) -> bytes:
    return bytes.fromhex(text.removeprefix("0x"))


def _hex(data: bytes) -> str:
    return "0x" + bytes(data).hex()


def _int(value: Any) -> int:
    return int(value, 16) if isinstance(value, str) else int(value)


if __name__ == "__main__":
    serve(Path(sys.argv[1]), int(sys.argv[2]))
