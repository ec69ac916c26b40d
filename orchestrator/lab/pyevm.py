"""A chain inside this process, on py-evm: where the lab falls back to when there is no anvil.

One block a transaction, at once. Everything that ever happened is a line in one file, and a restart plays it again:
slow after thousands of transactions, but nothing else has to be kept. No mempool, no reorganisations, no forks.
"""
from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

from eth.abc import BlockHeaderAPI, ComputationAPI, SignedTransactionAPI, StateAPI
from eth.chains.base import MiningChain
from eth.db.atomic import AtomicDB
from eth.exceptions import Revert
from eth.vm.chain_context import ChainContext
from eth.vm.forks.prague import PragueVM
from eth.vm.spoof import SpoofTransaction
from eth_typing import Address
from eth_utils.exceptions import ValidationError

CHAIN_ID = 31337
GAS_LIMIT = 30_000_000
NOBODY = bytes(20)
_GENESIS: Mapping[str, Any] = {"coinbase": NOBODY, "difficulty": 0, "gas_limit": GAS_LIMIT, "timestamp": 1,
                               "extra_data": b"", "nonce": bytes(8)}


class Refusal(Exception):
    """What a node answers instead of doing it. `data`: what a contract reverted with, as 0x-hex."""

    def __init__(self, message: str, data: str | None = None) -> None:
        super().__init__(message)
        self.data = data


@dataclass(frozen=True, slots=True)
class Mined:
    """One transaction and what came of it."""

    transaction: SignedTransactionAPI
    header: BlockHeaderAPI
    ok: bool
    logs: Sequence[Any]
    contract: bytes | None


class Chain:
    """`file` holds its whole history and is made if missing. Not for several threads at once."""

    def __init__(self, file: Path) -> None:
        kind = MiningChain.configure("LabChain", vm_configuration=((0, PragueVM),), chain_id=CHAIN_ID)
        self._chain: Any = kind.from_genesis(AtomicDB(), dict(_GENESIS), {})
        self._file = file
        self._mined: dict[bytes, Mined] = {}
        self.headers: list[BlockHeaderAPI] = [self._chain.get_canonical_head()]
        self._replay()
        # Seconds by which the clock was moved. A chain whose clock was ahead stays ahead.
        self._ahead = max(0, self._lead)

    # ---- time ----

    def advance(self, seconds: int) -> None:
        """From where the clock stands: several blocks in one second have pushed it already."""
        self._ahead = max(self._ahead, self._lead) + seconds

    @property
    def pending_time(self) -> int:
        """Time goes on without blocks; a block is never older than its parent, nor as old."""
        return max(int(time.time()) + self._ahead, self.headers[-1].timestamp + 1)

    @property
    def _lead(self) -> int:
        return self.headers[-1].timestamp - int(time.time())

    # ---- writes: every one is a block, and a line of the file ----

    def send(self, raw: bytes) -> bytes:
        """Mine it. Refusal in geth's words."""
        transaction = self._acceptable(raw)
        at = self.pending_time
        self._record(at=at, raw=raw.hex())
        self._mine(at, transaction)
        return bytes(transaction.hash)

    def give(self, address: bytes, wei: int) -> None:
        """Set a balance: the lab's faucet."""
        at = self.pending_time
        self._record(at=at, to=address.hex(), wei=wei)
        self._give(at, address, wei)

    def mine(self) -> None:
        at = self.pending_time
        self._record(at=at)
        self._mine(at, None)

    # ---- reads ----

    def mined(self, hash: bytes) -> Mined | None:
        return self._mined.get(hash)

    def all_mined(self) -> Iterator[Mined]:
        return iter(self._mined.values())

    def state(self, pending: bool = False) -> StateAPI:
        """The world after the last block; `pending`: as the next block would find it."""
        header = self.headers[-1]
        if pending:
            header = self._chain.create_header_from_parent(header).copy(timestamp=self.pending_time)
        vm = self._chain.get_vm(header)
        free = header.copy(base_fee_per_gas=0)
        hashes = [h.hash for h in reversed(self.headers[-256:])]
        state: StateAPI = vm.build_state(self._chain.chaindb.db, free, ChainContext(CHAIN_ID), hashes)
        return state

    def next_base_fee(self) -> int:
        return int(self._chain.create_header_from_parent(self.headers[-1]).base_fee_per_gas)

    def run(self, sender: Address, to: bytes, data: bytes, value: int, pending: bool) -> tuple[bytes, int]:
        """(answer, gas that it took) of a call that changes nothing. Refusal if it reverts."""
        state = self.state(pending)
        plain = self._chain.get_vm().create_unsigned_transaction(
            nonce=state.get_nonce(sender), gas_price=0, gas=GAS_LIMIT, to=to, value=value, data=data)
        computation = state.apply_transaction(cast(SignedTransactionAPI, SpoofTransaction(plain, from_=sender)))
        if computation.is_error:
            raise _reverted(computation)
        return bytes(computation.output), plain.intrinsic_gas + computation.get_gas_used()

    # ---- inside ----

    def _acceptable(self, raw: bytes) -> SignedTransactionAPI:
        try:
            transaction = self._chain.get_vm().get_transaction_builder().decode(raw)
            sender = transaction.sender
        except Exception as why:  # noqa: BLE001 why: foreign bytes; the decoder's errors are of many families
            raise Refusal(f"cannot decode the transaction: {type(why).__name__}") from None
        if bytes(transaction.hash) in self._mined:
            raise Refusal("already known")
        state, most = self.state(), int(getattr(transaction, "max_fee_per_gas", 0) or transaction.gas_price)
        if transaction.chain_id != CHAIN_ID:
            raise Refusal("invalid chain id for signer")
        if transaction.nonce != state.get_nonce(sender):
            raise Refusal("nonce too low" if transaction.nonce < state.get_nonce(sender) else "nonce too high")
        if most < self.next_base_fee():
            raise Refusal("max fee per gas less than block base fee")
        if state.get_balance(sender) < transaction.value + transaction.gas * most:
            raise Refusal("insufficient funds for gas * price + value")
        return transaction  # type: ignore[no-any-return]

    def _mine(self, at: int, transaction: SignedTransactionAPI | None) -> None:
        self._chain.set_header_timestamp(at)
        try:
            _, receipts, computations = self._chain.mine_all([transaction] if transaction else [])
        except ValidationError as why:
            raise Refusal(str(why)[:200]) from None
        self.headers.append(self._chain.get_canonical_head())
        if transaction is not None:
            made = computations[0].msg.storage_address if transaction.to == b"" else None
            self._mined[bytes(transaction.hash)] = Mined(
                transaction, self.headers[-1], receipts[0].state_root == b"\x01", receipts[0].logs, made)

    def _give(self, at: int, address: bytes, wei: int) -> None:
        vm = self._chain.get_vm()
        vm.state.set_balance(address, wei)
        vm.state.persist()
        self._chain.header = self._chain.header.copy(state_root=vm.state.state_root)
        self._mine(at, None)

    def _record(self, **what: Any) -> None:
        """On disk before it happens; what cannot be played again is left out when it is."""
        with self._file.open("a", encoding="ascii") as file:
            file.write(json.dumps(what) + "\n")
            file.flush()
            os.fsync(file.fileno())

    def _replay(self) -> None:
        if not self._file.exists():
            return
        text = self._file.read_text(encoding="ascii")
        if not text.endswith("\n"):
            text = text[:text.rfind("\n") + 1]       # the last line of a process that was killed
            os.truncate(self._file, len(text))
        for line in text.splitlines():
            what = json.loads(line)
            if "wei" in what:
                self._give(what["at"], bytes.fromhex(what["to"]), what["wei"])
            elif "raw" in what:
                self._again(what["at"], bytes.fromhex(what["raw"]))
            else:
                self._mine(what["at"], None)

    def _again(self, at: int, raw: bytes) -> None:
        try:
            self._mine(at, self._acceptable(raw))
        except Refusal:
            self._chain.header = self._chain.create_header_from_parent(self.headers[-1])


def _reverted(computation: ComputationAPI) -> Refusal:
    if isinstance(computation.error, Revert):
        data = bytes(computation.output)
        return Refusal("execution reverted" + _reason(data), "0x" + data.hex())
    return Refusal(f"execution failed: {type(computation.error).__name__}")


def _reason(data: bytes) -> str:
    """The text of a revert with a string."""
    if data[:4].hex() != "08c379a0" or len(data) < 68:
        return ""
    size = int.from_bytes(data[36:68], "big")
    return ": " + data[68:68 + size].decode(errors="replace")
