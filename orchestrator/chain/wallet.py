"""The key that pays and signs. It is held here and nowhere else, and this object never shows it.

A wallet is a keystore file (scrypt, the format every Ethereum tool reads) or, for a lab on this laptop, a throwaway
key in a file that only its owner may read. Nothing here talks to a chain; eth-account is imported when a key is used,
because that takes more than a second.
"""
from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from ..errors import BadInput

if TYPE_CHECKING:
    from eth_account.messages import SignableMessage
    from eth_account.signers.local import LocalAccount

_KEYSTORE_MAX = 64 * 1024


class Wallet:
    """One account. Prints as its address; cannot be copied, pickled or compared by its key."""

    __slots__ = ("_account",)

    def __init__(self, key: bytes) -> None:
        from eth_account import Account

        try:
            self._account: LocalAccount = Account.from_key(key)
        except Exception:  # noqa: BLE001 why: the library's own errors quote the key
            raise BadInput("not a private key of this curve") from None

    @property
    def address(self) -> str:
        """With the checksum in its letters."""
        return str(self._account.address)

    def sign_transaction(self, fields: Mapping[str, Any]) -> tuple[bytes, str]:
        """(raw bytes, 0x hash) of an EIP-1559 transaction."""
        signed = self._account.sign_transaction(dict(fields))
        return bytes(signed.raw_transaction), "0x" + bytes(signed.hash).hex()

    def sign_message(self, message: SignableMessage) -> str:
        """65 bytes, r s v, as 0x-hex."""
        return "0x" + bytes(self._account.sign_message(message).signature).hex()

    def __repr__(self) -> str:
        return f"Wallet({self.address})"

    def __reduce__(self) -> NoReturn:
        raise TypeError("a wallet is not copied")


def load(path: Path, password: str) -> Wallet:
    """The wallet in a keystore file. BadInput: no such file, not a keystore, wrong password, another's address."""
    wallet = Wallet(_opened(path, password))
    named = _named(_read_keystore(path))
    if named and named.lower() != wallet.address.lower():
        raise BadInput(f"{path.name} names the account {named[:42]}, its key is that of {wallet.address}",
                       hint="somebody changed the file: send nothing to the account that it names")
    return wallet


def address_of(path: Path) -> str:
    """The account that a keystore file names, without its password. BadInput: none, or it names none."""
    from eth_utils.address import is_hex_address, to_checksum_address

    named = _named(_read_keystore(path))
    if not is_hex_address(named):
        raise BadInput(f"{path.name} does not say whose it is", hint=f"sealtune wallet import {path}")
    return str(to_checksum_address(named))


def new(path: Path, password: str) -> Wallet:
    """A new account in a new keystore file."""
    return save(path, secrets.token_bytes(32), password)


def take_over(source: Path, path: Path, password: str) -> Wallet:
    """The account of another tool's keystore file, under the same password, encrypted anew as ours are."""
    return save(path, _opened(source, password), password)


def typed_key(text: str) -> bytes:
    """A private key as a person typed it. BadInput, which does not quote it."""
    digits = text.strip().removeprefix("0x")
    if not re.fullmatch(r"[0-9a-fA-F]{64}", digits):
        raise BadInput("that is no private key: 64 hex digits are needed, with or without 0x before them")
    return bytes.fromhex(digits)


def _opened(path: Path, password: str) -> bytes:
    from eth_account import Account

    keystore = _read_keystore(path)
    try:
        return bytes(Account.decrypt(keystore, password))
    except Exception:  # noqa: BLE001 why: open-ended for a broken file, and may quote secrets
        raise BadInput(f"wrong password for {path.name}, or the file is damaged") from None


def _named(keystore: Mapping[str, Any]) -> str:
    """The account as the file says it, "0x…"; "" where it does not."""
    named = keystore.get("address")
    return "0x" + named.removeprefix("0x") if isinstance(named, str) and named else ""


def save(path: Path, key: bytes, password: str) -> Wallet:
    """Write a new keystore file, readable by its owner only. BadInput if there is one already."""
    from eth_account import Account

    if path.exists():
        raise BadInput(f"{path} exists already")
    wallet = Wallet(key)
    _write_new(path, json.dumps(Account.encrypt(key, password)).encode())
    return wallet


def lab_key(path: Path) -> Wallet:
    """A lab's throwaway key: the one in this file, or a new one. Worth nothing outside the lab."""
    if not path.exists():
        with contextlib.suppress(BadInput):   # somebody was faster: theirs counts
            _write_new(path, secrets.token_hex(32).encode() + b"\n")
    return load_key(path)


def load_key(path: Path) -> Wallet:
    """BadInput if there is no such file, if others may read it, or if it is no key."""
    try:
        with path.open("rb") as file:
            if os.fstat(file.fileno()).st_mode & 0o077:
                raise BadInput(f"{path.name} can be read by others", hint=f"chmod 600 {path}")
            text = file.read(128).decode("ascii", errors="replace").strip()
    except OSError as why:
        raise BadInput(f"cannot read the key {path.name}: {why.strerror}") from None
    try:
        return Wallet(bytes.fromhex(text.removeprefix("0x")))
    except ValueError:
        raise BadInput(f"{path.name} holds no key") from None


def _read_keystore(path: Path) -> dict[str, Any]:
    try:
        with path.open("rb") as file:
            text = file.read(_KEYSTORE_MAX)
    except OSError as why:
        hint = "sealtune wallet new, or sealtune wallet import" if isinstance(why, FileNotFoundError) else None
        raise BadInput(f"cannot read the wallet {path}: {why.strerror}", hint=hint) from None
    try:
        keystore = json.loads(text)
    except ValueError:
        keystore = None
    if not isinstance(keystore, dict) or "crypto" not in {name.lower() for name in keystore}:
        raise BadInput(f"{path} is no keystore file", hint="export the account as a keystore (JSON, version 3)")
    return keystore


def _write_new(path: Path, content: bytes) -> None:
    """All of it or none of it: a crash in between leaves no half key under the name."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{path.name}.{secrets.token_hex(6)}")
    handle = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.link(draft, path)             # fails where a file is already
    except FileExistsError:
        raise BadInput(f"{path} exists already") from None
    finally:
        draft.unlink(missing_ok=True)
