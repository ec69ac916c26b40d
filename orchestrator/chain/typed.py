"""What is signed, as EIP-712 typed data: quote, ready message, request to a provider. One domain for all of them.

Used by both sides, the renter's chain room and the provider. Pure: no chain, no clock, no randomness. The fields of
Quote, Ready and Budget are those of domain/escrow.py, in their order; the contract hashes Quote and Budget in the same
way, and tests compare the two. A budget is not signed itself: its digest is the number of the transfer that is.
"""
from __future__ import annotations

import dataclasses
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from ..domain.escrow import Budget, EscrowFacts, Quote, Ready

if TYPE_CHECKING:
    from eth_account.messages import SignableMessage

    from .signer import Signer

DOMAIN_NAME, DOMAIN_VERSION = "sealtune RentalEscrow", "1"
_TYPES: Mapping[str, tuple[tuple[str, str], ...]] = {
    "Quote": (("provider", "address"), ("renter", "address"), ("offerId", "bytes32"), ("specHash", "bytes32"),
              ("pricePerHour", "uint96"), ("feeBps", "uint16"), ("feeRecipient", "address"), ("minSeconds", "uint32"),
              ("maxSeconds", "uint32"), ("startWindow", "uint32"), ("inspectionSeconds", "uint32"),
              ("validUntil", "uint64"), ("salt", "bytes32")),
    "Ready": (("rentalId", "bytes32"), ("host", "string"), ("port", "uint16"), ("user", "string"),
              ("hostKeys", "string[]"), ("accessHash", "bytes32"), ("notBefore", "uint64"), ("salt", "bytes32")),
    "Budget": (("owner", "address"), ("session", "address"), ("cap", "uint96"), ("maxPricePerHour", "uint96"),
               ("expiry", "uint40"), ("providersHash", "bytes32"), ("salt", "bytes32")),
    "End": (("id", "bytes32"), ("reportDigest", "bytes32")),
    "ApiRequest": (("method", "string"), ("path", "string"), ("bodyHash", "bytes32"), ("rentalId", "bytes32"),
                   ("issuedAt", "uint64"), ("nonce", "bytes32")),
}
_HALF_ORDER = 0x7FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF5D576E7357A4501DDFE92F46681B20A0
_HEADERS = ("Sealtune-Rental", "Sealtune-Issued-At", "Sealtune-Nonce", "Sealtune-Signature")


@dataclass(frozen=True, slots=True)
class ApiRequest:
    """What a renter signs to ask a provider something. `path` is the request target as sent, query included."""

    method: str
    path: str
    bodyHash: str                        # sha256 of the body, 0x-hex
    rentalId: str
    issuedAt: int
    nonce: str


@dataclass(frozen=True, slots=True)
class End:
    """What a renter signs so that anyone may end its rental."""

    id: str
    reportDigest: str


Value: TypeAlias = Quote | Ready | Budget | ApiRequest | End


def message(facts: EscrowFacts, value: Value) -> SignableMessage:
    """The value as it is signed. ValueError for what does not fit the types (a quote comes from a stranger)."""
    from eth_account.messages import encode_typed_data

    return encode_typed_data(_domain(facts), _types(value), _fields(value))


def document(facts: EscrowFacts, value: Value) -> dict[str, Any]:
    """The same, as a browser's wallet takes it."""
    domain_types = [{"name": n, "type": k} for n, k in (("name", "string"), ("version", "string"), ("chainId", "uint256"),
                                                        ("verifyingContract", "address"))]
    return {"types": {"EIP712Domain": domain_types, **_types(value)}, "primaryType": type(value).__name__,
            "domain": _domain(facts), "message": _fields(value)}


def _domain(facts: EscrowFacts) -> dict[str, Any]:
    return {"name": DOMAIN_NAME, "version": DOMAIN_VERSION, "chainId": facts.chain_id,
            "verifyingContract": _checked("escrow", "address", facts.escrow)}


def _types(value: Value) -> dict[str, list[dict[str, str]]]:
    name = type(value).__name__
    return {name: [{"name": field, "type": kind} for field, kind in _TYPES[name]]}


def _fields(value: Value) -> dict[str, Any]:
    return {f.name: _checked(f.name, kind, getattr(value, f.name))
            for f, (_, kind) in zip(dataclasses.fields(value), _TYPES[type(value).__name__], strict=True)}


def digest(signable: SignableMessage) -> str:
    """What is really signed: the contract's quoteDigest, for a quote."""
    return _keccak(b"\x19" + signable.version + signable.header + signable.body)


def struct_hash(signable: SignableMessage) -> str:
    """Without the domain: for a ready message, what `activate` stores."""
    return "0x" + signable.body.hex()


def domain_separator(facts: EscrowFacts) -> str:
    zeros = "0x" + "00" * 32
    return "0x" + message(facts, ApiRequest("", "", zeros, zeros, 0, zeros)).header.hex()


def rental_id(facts: EscrowFacts, renter: str, key: str) -> str:
    """The contract's rentalId: known before the rental exists, and nobody else can take it."""
    words = (facts.chain_id.to_bytes(32, "big"), bytes32(facts.escrow), bytes32(renter), bytes32(key))
    return _keccak(b"".join(words))


def signer(signable: SignableMessage, signature: str) -> str | None:
    """Whose signature this is. None for anything but 65 bytes in the one form that the contract accepts."""
    from eth_account import Account

    if not re.fullmatch(r"0x[0-9a-fA-F]{130}", signature):
        return None
    raw = bytes.fromhex(signature[2:])
    if int.from_bytes(raw[32:64], "big") > _HALF_ORDER or raw[64] not in (27, 28):
        return None
    try:
        return str(Account.recover_message(signable, signature=raw))
    except Exception:  # noqa: BLE001 why: the libraries below disagree on which error it is
        return None


def request_headers(facts: EscrowFacts, wallet: Signer, request: ApiRequest) -> dict[str, str]:
    """The headers that prove a request."""
    signature = wallet.sign_message(message(facts, request))
    return dict(zip(_HEADERS, (request.rentalId, str(request.issuedAt), request.nonce, signature), strict=True))


def read_request(facts: EscrowFacts, method: str, path: str, body: bytes,
                 headers: Mapping[str, str]) -> tuple[str, ApiRequest]:
    """(address of the signer, what it signed), from a request as it came. ValueError if it proves nothing.

    Whether `issuedAt` is recent, the nonce new, and the signer the renter of that rental is the caller's to ask.
    """
    found = {name.lower(): value for name, value in headers.items()}
    missing = [name for name in _HEADERS if name.lower() not in found]
    if missing:
        raise ValueError(f"missing header {missing[0]}")
    rental, issued_at, nonce, signature = (found[name.lower()] for name in _HEADERS)
    if not re.fullmatch(r"[0-9]{1,12}", issued_at):
        raise ValueError("Sealtune-Issued-At is no time")
    request = ApiRequest(method, path, body_hash(body), rental, int(issued_at), nonce)
    address = signer(message(facts, request), signature)
    if address is None:
        raise ValueError("Sealtune-Signature is no signature")
    return address, request


def body_hash(body: bytes) -> str:
    return "0x" + hashlib.sha256(body).hexdigest()


def providers_hash(providers: Sequence[str]) -> str:
    """As the contract takes a list: keccak256(abi.encode(address[])); zeros for none, which means whomever."""
    if not providers:
        return "0x" + "00" * 32
    return _keccak(b"".join([(32).to_bytes(32, "big"), len(providers).to_bytes(32, "big"), *map(bytes32, providers)]))


def bytes32(text: str) -> bytes:
    """32 bytes from "0x…" (an address is padded on the left), bare hex, "sha256:…", or "" for zeros. ValueError."""
    digits = text.removeprefix("sha256:").removeprefix("0x")
    if not re.fullmatch(r"|[0-9a-fA-F]{40}|[0-9a-fA-F]{64}", digits):
        raise ValueError(f"not 32 bytes: {text[:80]!r}")
    return bytes.fromhex(digits.rjust(64, "0"))


def _checked(name: str, kind: str, value: Any) -> Any:
    """The value as eth-account wants it, which takes a lot more than these types allow."""
    if kind == "address":
        good = isinstance(value, str) and bool(re.fullmatch(r"0x[0-9a-fA-F]{40}", value))
    elif kind == "bytes32":
        good = isinstance(value, str) and bool(re.fullmatch(r"0x[0-9a-fA-F]{64}", value))
    elif kind.startswith("uint"):
        good = type(value) is int and 0 <= value < 1 << int(kind[4:])
    elif kind == "string[]":
        return [_checked(name, "string", one) for one in value]
    else:
        good = isinstance(value, str) and _is_text(value)
    if not good:
        raise ValueError(f"{name} is no {kind}: {str(value)[:80]!r}")
    return value.lower() if kind == "address" else value


def _is_text(value: str) -> bool:
    """Whether it can be encoded at all: a lone surrogate cannot."""
    return not any(0xD800 <= ord(letter) <= 0xDFFF for letter in value)


def _keccak(data: bytes) -> str:
    from eth_hash.auto import keccak

    return "0x" + bytes(keccak(data)).hex()
