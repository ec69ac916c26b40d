"""A signed transaction, read back from its bytes: what it does and what it bids. Pure."""
from __future__ import annotations

from typing import Any

from .fees import Fees


def fields_of(raw: bytes) -> dict[str, Any]:
    """The fields of an EIP-1559 transaction, without its signature."""
    from eth_account.typed_transactions.typed_transaction import TypedTransaction
    from hexbytes import HexBytes

    fields = TypedTransaction.from_bytes(HexBytes(raw)).as_dict()
    wanted = ("chainId", "nonce", "to", "value", "data", "gas", "maxFeePerGas", "maxPriorityFeePerGas")
    return {name: fields[name] for name in wanted}


def bid_of(raw: bytes) -> Fees:
    fields = fields_of(raw)
    return Fees(fields["maxPriorityFeePerGas"], fields["maxFeePerGas"])
