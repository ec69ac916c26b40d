"""The chain of chain.py on anvil: real transactions, for what this process's EVM cannot say, which is what they cost.

Every call is one transaction with a receipt: intrinsic gas, calldata and refunds are in its figure.
"""
from __future__ import annotations

import contextlib
import itertools
import json
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from orchestrator.lab import chain as lab
from tests.fakes.labchain import TOOLS, free_port

from .chain import START, Chain

_GAS = 16_000_000


class NodeChain(Chain):
    """Accounts need no keys and no coin. Refusals are not read here: what is sent must go through."""

    def __init__(self, url: str) -> None:
        self._url, self._ids = url, itertools.count()
        self._receipt: dict[str, Any] = {}
        self._rpc("anvil_autoImpersonateAccount", True)
        self.warp(START)

    def warp(self, time: int) -> None:
        self.now = time

    def deploy(self, sender: str, code: bytes) -> str:
        self._transact(sender, None, code)
        return str(self._receipt["contractAddress"])

    def send(self, sender: str, to: str, data: bytes, gas: int | None = None) -> bytes:
        self._transact(sender, to, data)
        return b""

    def read(self, to: str, data: bytes) -> bytes:
        return bytes.fromhex(self._rpc("eth_call", {"to": to, "data": "0x" + data.hex()}, "latest")[2:])

    def code(self, address: str) -> bytes:
        return bytes.fromhex(self._rpc("eth_getCode", address, "latest")[2:])

    @property
    def gas_used(self) -> int:
        return int(self._receipt["gasUsed"], 16)

    def _transact(self, sender: str, to: str | None, data: bytes) -> None:
        fields = {"from": sender, "data": "0x" + data.hex(), "gas": hex(_GAS), "maxFeePerGas": hex(10**10)}
        self._rpc("anvil_setBalance", sender, hex(10**21))
        self._rpc("evm_setNextBlockTimestamp", self.now)
        hash = self._rpc("eth_sendTransaction", fields if to is None else {**fields, "to": to})
        deadline = time.monotonic() + 10
        while (receipt := self._rpc("eth_getTransactionReceipt", hash)) is None and time.monotonic() < deadline:
            time.sleep(0.01)
        self._receipt = receipt
        assert self._receipt["status"] == "0x1", self._receipt
        self.now += 1

    def _rpc(self, method: str, *parameters: Any) -> Any:
        body = json.dumps({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": parameters}).encode()
        request = urllib.request.Request(self._url, body, {"content-type": "application/json"})
        with urllib.request.urlopen(request, timeout=10) as answer:
            found = json.load(answer)
        assert "error" not in found, found["error"]
        return found["result"]


@contextlib.contextmanager
def node(folder: Path) -> Iterator[NodeChain]:
    process = lab.start(folder, free_port(), "anvil", TOOLS)
    try:
        yield NodeChain(process.url)
    finally:
        lab.stop(process)
