"""A wallet in the person's browser: its account is read once, and it signs what the contract knows as typed data.

It cannot send; whoever has gas sends what it signed.
"""
from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..domain.escrow import EscrowFacts, Rental
from ..domain.money import USDC, Money
from ..errors import Refused
from . import bridge, typed
from .bridge import Ask, Document
from .networks import LAB, Network, network
from .signer import Watcher

_NO_REPORT = "0x" + "00" * 32


class BrowserWallet:
    """One account behind the bridge. `show` gets the address of the page that the person has to open."""

    def __init__(self, facts: EscrowFacts, rpc: str, show: Callable[[str], None], account: str = "",
                 patience_s: float = bridge.PATIENCE_S) -> None:
        self._facts, self._show, self._patience_s = facts, show, patience_s
        self._network: Network = network(facts.chain_id)
        self._rpc = rpc if self._network == LAB else ""      # another node's address may hold a key of the person's
        self.address = Watcher(account).address if account else self._read_account()

    def sign_ends(self, rentals: Sequence[Rental]) -> Sequence[str]:
        """The renter's signature under the end of each, which anybody may send. Refused: no, or not this account's."""
        ends = [typed.End(rental.id, _NO_REPORT) for rental in rentals]
        words = [f"end rental {r.id}: what has accrued is paid, the rest of {Money(r.deposit, USDC)} comes back"
                 for r in rentals]
        return self.sign("Sign the end of these rentals.", [
            Document(said, typed.document(self._facts, end)) for said, end in zip(words, ends, strict=True)])

    def sign(self, title: str, documents: Sequence[Document]) -> Sequence[str]:
        """See Owner."""
        given = self._ask(title, documents).get("signatures")
        if not isinstance(given, list) or len(given) != len(documents):
            raise Refused("the wallet in the browser did not sign all of it", hint="the same command again")
        return [self._checked(document, one) for document, one in zip(documents, given, strict=True)]

    def _checked(self, document: Document, given: Any) -> str:
        """One for another chain or contract, or by another account, is not this account's under this document."""
        from eth_account.messages import encode_typed_data

        signature = _usual(given)
        if typed.signer(encode_typed_data(full_message=dict(document.typed)), signature) != self.address:
            raise Refused(f"that is not the signature of {self.address} under what was shown",
                          hint="choose that account, and the network that is named, in the wallet; a contract account "
                               "cannot do this")
        return signature

    def _read_account(self) -> str:
        account = self._ask("Which account?", ()).get("account")
        if not isinstance(account, str) or not re.fullmatch(r"0x[0-9a-fA-F]{40}", account):
            raise Refused("the wallet in the browser named no account", hint="the same command again")
        return Watcher(account).address

    def _ask(self, title: str, documents: Sequence[Document]) -> Mapping[str, Any]:
        known = getattr(self, "address", "")
        return bridge.ask(Ask(title, self._network.name, self._facts.chain_id, known, self._rpc, documents), self._show,
                          self._patience_s)


def _usual(given: Any) -> str:
    """Some wallets end a signature with 0 or 1 where the contract wants 27 or 28."""
    if not isinstance(given, str) or not re.fullmatch(r"0x[0-9a-fA-F]{130}", given):
        return ""
    last = int(given[-2:], 16)
    return f"{given[:-2]}{last + 27:02x}" if last < 2 else given
