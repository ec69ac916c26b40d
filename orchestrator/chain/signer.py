"""Who signs: the one small border behind which a wallet is a key in memory, or only an address to look at.

Sender and escrow ask for nothing more than this.
"""
from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NoReturn, Protocol

from ..errors import BadInput, Refused

if TYPE_CHECKING:
    from eth_account.messages import SignableMessage

    from .bridge import Document


class Signer(Protocol):
    """One account."""

    @property
    def address(self) -> str:
        """With the checksum in its letters."""
        ...

    def sign_transaction(self, fields: Mapping[str, Any]) -> tuple[bytes, str]:
        """(raw bytes, 0x hash) of an EIP-1559 transaction."""
        ...

    def sign_message(self, message: SignableMessage) -> str:
        """65 bytes, r s v, as 0x-hex."""
        ...


class Owner(Protocol):
    """An account whose person signs what is shown, elsewhere. It cannot send: what it signs, another key sends."""

    @property
    def address(self) -> str:
        """With the checksum in its letters."""
        ...

    def sign(self, title: str, documents: Sequence[Document]) -> Sequence[str]:
        """This account's signature under each, as the contracts take it. Refused: no, nobody, or not this account's."""
        ...


def checksummed(text: str) -> str:
    """An address as a person typed it. BadInput for a typing error: one with capitals must have its checksum right."""
    from eth_utils.address import is_checksum_address, to_checksum_address

    if not re.fullmatch(r"0x[0-9a-fA-F]{40}", text):
        raise BadInput(f"no address: {text[:60]!r}", hint="0x and 40 hex digits, copied, not typed")
    digits = text[2:]
    if digits not in (digits.lower(), digits.upper()) and not is_checksum_address(text):
        raise BadInput(f"{text} has a typing error: its checksum is wrong", hint="copy the address again")
    return str(to_checksum_address(text))


class Watcher:
    """An account without its key, for looking at it: no password is needed for that."""

    __slots__ = ("address",)

    def __init__(self, address: str) -> None:
        from eth_utils.address import to_checksum_address

        self.address: str = str(to_checksum_address(address))

    def sign(self, title: str, documents: Sequence[Document]) -> Sequence[str]:
        self._refuse()

    def sign_transaction(self, fields: Mapping[str, Any]) -> tuple[bytes, str]:
        self._refuse()

    def sign_message(self, message: SignableMessage) -> str:
        self._refuse()

    def _refuse(self) -> NoReturn:
        raise Refused(f"{self.address} is only looked at here, its key was not opened")
