"""The last of a wallet's coin, sent home. Inside a turn of its sender."""
from __future__ import annotations

from ..domain.money import POL, Money
from . import fees
from .rpc import Rpc
from .sender import Sender, with_margin


def coin_home(rpc: Rpc, sender: Sender, policy: fees.Policy, address: str, to: str) -> tuple[Money, tuple[str, ...]]:
    """(what was sent, its transactions). Twice the gas stays behind, so that a bid can be raised; a rest that is not worth
    its gas stays as well."""
    owned = rpc.balance(address)
    if not owned:
        return Money(0, POL), ()
    bid, _ = fees.today(rpc, policy)
    reserve = 2 * bid.most * with_margin(rpc.gas_for(address, to, b"", 1))
    amount = Money(owned - reserve, POL)
    if amount.units < reserve:
        return Money(0, POL), ()
    return amount, (sender.send(sender.fresh_key("sweep:coin"), to, b"", amount.units).hash,)
