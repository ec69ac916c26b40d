"""A chain in this process: enough of one to deploy contracts, call them as anyone at any second, and read refusals.

No blocks, no receipts, no nonces: those belong to the tests of the client. Five methods (deploy, send, read, code,
warp), so that another EVM could stand here.
"""
from __future__ import annotations

import re
from types import SimpleNamespace
from typing import Any

import pyrevm
from eth_abi.abi import decode, encode
from eth_utils.crypto import keccak

CHAIN_ID = 31337
START = 1_900_000_000
_REVERT = re.compile(r"^Revert \{ gas_used: \d+, output: 0x([0-9a-f]*) \}$")
_PADDING = 33                            # this EVM pads code with zeros for its own jump analysis


class Reverted(Exception):
    """A call that the contract refused: the error's name and arguments. A string revert is called Error."""

    def __init__(self, name: str, args: tuple[Any, ...]) -> None:
        super().__init__(name, *args)
        self.name = name
        self.arguments = args


class Chain:
    calls = 0                            # of all chains in this process: what a long test has done

    def __init__(self, chain_id: int = CHAIN_ID) -> None:
        environment = pyrevm.Env(cfg=pyrevm.CfgEnv(chain_id=chain_id))
        self._evm = pyrevm.EVM(spec_id="CANCUN", env=environment)
        self.now = START
        self._number = 1
        self.warp(START)

    def warp(self, time: int) -> None:
        """Go to a second, later or earlier."""
        self.now = time
        self._number += 1
        self._evm.set_block_env(pyrevm.BlockEnv(number=self._number, timestamp=time))

    def deploy(self, sender: str, code: bytes) -> str:
        return str(self._evm.deploy(sender, code))

    def send(self, sender: str, to: str, data: bytes, gas: int | None = None) -> bytes:
        return self._call(sender, to, data, gas=gas)

    def read(self, to: str, data: bytes) -> bytes:
        return self._call("0x" + "00" * 20, to, data, is_static=True)

    def code(self, address: str) -> bytes:
        code = bytes(self._evm.get_code(address) or b"")
        return code[:-_PADDING]

    def put_code(self, address: str, code: bytes) -> None:
        """Give an account code, as a delegation (EIP-7702) would."""
        self._evm.insert_account_info(address, pyrevm.AccountInfo(nonce=1, code=code))

    @property
    def gas_used(self) -> int:
        result = self._evm.result
        assert result is not None
        return int(result.gas_used)

    def logs(self) -> list[tuple[str, list[bytes], bytes]]:
        """Of the last call: address, topics, data."""
        result = self._evm.result
        assert result is not None
        return [(log.address.lower(), [bytes.fromhex(t[2:]) for t in log.topics], bytes(log.data[1]))
                for log in result.logs]

    def _call(self, sender: str, to: str, data: bytes, **how: Any) -> bytes:
        self._evm.reset_transient_storage()
        Chain.calls += 1
        try:
            return bytes(self._evm.message_call(sender, to, data, **how))
        except RuntimeError as error:
            refused = _REVERT.match(str(error))
            if refused is None:
                raise
            raise Reverted("raw", (bytes.fromhex(refused[1]),)) from None


class Contract:
    """A contract at an address, called by the names in its ABI. Structs come back as namespaces."""

    def __init__(self, chain: Chain, address: str, abi: list[dict[str, Any]]) -> None:
        self.chain = chain
        self.address = address.lower()
        self._functions = {e["name"]: e for e in abi if e["type"] == "function"}
        self._selectors = {name: _selector(entry) for name, entry in self._functions.items()}
        self._errors = {_selector(e): e for e in abi if e["type"] == "error"}
        self._errors |= {_selector(e): e for e in (_STRING_REVERT, _PANIC)}
        self._events = {keccak(text=_signature(e)): e for e in abi if e["type"] == "event"}

    def send(self, sender: str, function: str, *arguments: Any, gas: int | None = None) -> Any:
        return self._run(function, lambda data: self.chain.send(sender, self.address, data, gas), arguments)

    def read(self, function: str, *arguments: Any) -> Any:
        return self._run(function, lambda data: self.chain.read(self.address, data), arguments)

    def encode(self, function: str, *arguments: Any) -> bytes:
        entry = self._functions[function]
        return bytes(self._selectors[function] + encode([_type(i) for i in entry["inputs"]], arguments))

    def events(self) -> list[tuple[str, dict[str, Any]]]:
        """What this contract logged in the last call."""
        return [self._event(topics, data) for address, topics, data in self.chain.logs() if address == self.address]

    def explain(self, answer: bytes) -> Reverted:
        """The refusal in revert data."""
        entry = self._errors.get(answer[:4])
        if entry is None:
            return Reverted("unknown", (answer,))
        return Reverted(entry["name"], tuple(decode([_type(i) for i in entry["inputs"]], answer[4:])))

    def _run(self, function: str, call: Any, arguments: tuple[Any, ...]) -> Any:
        try:
            answer = call(self.encode(function, *arguments))
        except Reverted as refused:
            raise self.explain(refused.arguments[0]) from None
        outputs = self._functions[function]["outputs"]
        values = decode([_type(o) for o in outputs], answer) if answer else ()
        named = [_named(o, v) for o, v in zip(outputs, values, strict=bool(answer))]
        return named[0] if len(named) == 1 else tuple(named)

    def _event(self, topics: list[bytes], data: bytes) -> tuple[str, dict[str, Any]]:
        entry = self._events[topics[0]]
        indexed = [i for i in entry["inputs"] if i["indexed"]]
        plain = [i for i in entry["inputs"] if not i["indexed"]]
        found = {i["name"]: decode([_type(i)], t)[0] for i, t in zip(indexed, topics[1:], strict=True)}
        found |= dict(zip([i["name"] for i in plain], decode([_type(i) for i in plain], data), strict=True))
        return entry["name"], found


_STRING_REVERT = {"type": "error", "name": "Error", "inputs": [{"name": "message", "type": "string"}]}
_PANIC = {"type": "error", "name": "Panic", "inputs": [{"name": "code", "type": "uint256"}]}


def _type(item: dict[str, Any]) -> str:
    """An ABI item's type as one string, structs spelled out."""
    if not item["type"].startswith("tuple"):
        return str(item["type"])
    inner = ",".join(_type(c) for c in item["components"])
    return f"({inner}){item['type'].removeprefix('tuple')}"


def _signature(entry: dict[str, Any]) -> str:
    return f"{entry['name']}({','.join(_type(i) for i in entry['inputs'])})"


def _selector(entry: dict[str, Any]) -> bytes:
    return bytes(keccak(text=_signature(entry))[:4])


def _named(item: dict[str, Any], value: Any) -> Any:
    if item["type"] == "tuple":
        return SimpleNamespace(**{c["name"]: v for c, v in zip(item["components"], value, strict=True)})
    if item["type"] == "tuple[]":
        return [_named(item | {"type": "tuple"}, v) for v in value]
    return value
