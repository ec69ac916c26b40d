"""The four kinds of secrets: how one is made, and what its public half is. Bytes in, bytes out, no files."""
from __future__ import annotations

import hashlib
import secrets
from collections.abc import Callable
from dataclasses import dataclass

TOKEN_BYTES = 24


@dataclass(frozen=True, slots=True)
class Kind:
    make: Callable[[], bytes]
    public: Callable[[bytes], str]           # ValueError for bytes of another kind


def _make_ssh() -> bytes:
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    return Ed25519PrivateKey.generate().private_bytes(
        form.Encoding.PEM, form.PrivateFormat.OpenSSH, form.NoEncryption())


def _ssh_line(secret: bytes) -> str:
    """"ssh-ed25519 AAAA…", without a comment: it would name the laptop's user and host."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    key = form.load_ssh_private_key(secret, None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("not an ed25519 key")
    return key.public_key().public_bytes(form.Encoding.OpenSSH, form.PublicFormat.OpenSSH).decode()


def _make_age() -> bytes:
    from pyrage import x25519  # type: ignore[import-untyped, unused-ignore]
    return str(x25519.Identity.generate()).encode()


def _age_recipient(secret: bytes) -> str:
    from pyrage import IdentityError, x25519  # type: ignore[import-untyped, unused-ignore]
    try:
        return str(x25519.Identity.from_str(secret.decode()).to_public())
    except IdentityError as problem:
        raise ValueError("not an age identity") from problem


def _make_token() -> bytes:
    return secrets.token_hex(TOKEN_BYTES).encode()


def _token_digest(secret: bytes) -> str:
    if len(bytes.fromhex(secret.decode())) != TOKEN_BYTES:
        raise ValueError("not a token")
    return f"sha256:{hashlib.sha256(secret).hexdigest()}"


def _make_secp256k1() -> bytes:
    from cryptography.hazmat.primitives.asymmetric import ec
    return f"{ec.generate_private_key(ec.SECP256K1()).private_numbers().private_value:064x}".encode()


def _secp256k1_point(secret: bytes) -> str:
    """The uncompressed point, "04…" in hex: what a chain's address is made of."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric import ec
    if len(secret) != 64:
        raise ValueError("not a key of secp256k1")
    key = ec.derive_private_key(int(secret, 16), ec.SECP256K1())
    return key.public_key().public_bytes(form.Encoding.X962, form.PublicFormat.UncompressedPoint).hex()


KINDS = {"ssh": Kind(_make_ssh, _ssh_line), "age": Kind(_make_age, _age_recipient),
         "secp256k1": Kind(_make_secp256k1, _secp256k1_point), "token": Kind(_make_token, _token_digest)}
