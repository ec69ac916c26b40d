"""SSH signatures (OpenSSH's PROTOCOL.sshsig), Ed25519 only, so that stock `ssh-keygen -Y verify` accepts a report.

Reading is strict: what is not exactly the one spelling of a signature is none. Which keys are trusted is the
caller's business; a signature carries its key, and that says nothing.
"""
from __future__ import annotations

import base64
import binascii
import fnmatch
import hashlib
import re
import struct
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ..domain.hostkey import fingerprint_of
from ..errors import BadInput

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

NAMESPACE = "sealtune-report"
MAGIC, VERSION, HASH, KIND = b"SSHSIG", 1, b"sha512", b"ssh-ed25519"
BEGIN, END = b"-----BEGIN SSH SIGNATURE-----\n", b"-----END SSH SIGNATURE-----\n"
COLUMNS = 70
SIGNER_LINE = re.compile(r'(?:"[^"]*"|[^\s"]+)\s+(?:namespaces="(?P<namespaces>[^"]+)"\s+)?'
                         r'(?P<kind>(?:ssh|ecdsa|sk)-\S+)\s+(?P<key>\S+)(?:\s.*)?', re.ASCII)


class BadSignature(ValueError):
    """Not a signature, or not one over these bytes."""


@dataclass(frozen=True, slots=True)
class PublicKey:
    """An Ed25519 key in SSH's own bytes."""

    blob: bytes

    @property
    def fingerprint(self) -> str:
        """As ssh-keygen shows it: SHA256:…"""
        return fingerprint_of(self.blob)

    @property
    def line(self) -> str:
        return f"{KIND.decode()} {base64.b64encode(self.blob).decode()}"

    @classmethod
    def parse(cls, line: str) -> PublicKey:
        """"ssh-ed25519 AAAA… [comment]". ValueError for anything else."""
        kind, encoded, *_ = [*line.split(), "", ""]
        try:
            key = cls(base64.b64decode(encoded, validate=True))
            key.raw()
        except (binascii.Error, BadSignature) as problem:
            raise ValueError(f"not an ssh-ed25519 key: {line[:80]!r}") from problem
        if kind != KIND.decode():
            raise ValueError(f"not an ssh-ed25519 key: {line[:80]!r}")
        return key

    def raw(self) -> bytes:
        """The 32 bytes of the key."""
        kind, raw = _strings(self.blob, 2)
        if kind != KIND or len(raw) != 32:
            raise BadSignature("not an ssh-ed25519 key")
        return raw


def load_key(pem: bytes) -> Ed25519PrivateKey:
    """An unencrypted OpenSSH key. ValueError for another kind."""
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
    from cryptography.hazmat.primitives.serialization import load_ssh_private_key
    key = load_ssh_private_key(pem, None)
    if not isinstance(key, Ed25519PrivateKey):
        raise ValueError("not an Ed25519 key")
    return key


def public_key(key: Ed25519PrivateKey) -> PublicKey:
    return PublicKey(_string(KIND) + _string(key.public_key().public_bytes_raw()))


def sign(key: Ed25519PrivateKey, message: bytes, namespace: str = NAMESPACE) -> bytes:
    """The armoured signature, as a `.sig` file holds it. The same key and message give the same bytes."""
    signature = _string(KIND) + _string(key.sign(_signed(message, namespace.encode())))
    return _armour(MAGIC + struct.pack(">I", VERSION) + _string(public_key(key).blob) + _string(namespace.encode())
                   + _string(b"") + _string(HASH) + _string(signature))


def verify(armoured: bytes, message: bytes, namespace: str = NAMESPACE) -> PublicKey:
    """The key that made this signature over this message. BadSignature otherwise."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
    blob = _bare(armoured)
    if not blob.startswith(MAGIC + struct.pack(">I", VERSION)):
        raise BadSignature("not a signature of version 1")
    signer, space, reserved, hashed, signature = _strings(blob[len(MAGIC) + 4:], 5)
    if (space, reserved, hashed) != (namespace.encode(), b"", HASH):
        raise BadSignature(f"not a {HASH.decode()} signature for {namespace}")
    key = PublicKey(signer)
    kind, raw = _strings(signature, 2)
    if kind != KIND:
        raise BadSignature("not an ssh-ed25519 signature")
    try:
        Ed25519PublicKey.from_public_bytes(key.raw()).verify(raw, _signed(message, space))
    except (InvalidSignature, ValueError) as problem:
        raise BadSignature("the signature does not fit these bytes") from problem
    return key


def allowed_signers(data: bytes, namespace: str = NAMESPACE) -> frozenset[PublicKey]:
    """The Ed25519 keys of an allowed_signers file that may sign in this namespace. BadInput names a faulty line.

    A line ends where OpenSSH ends it, so that no letter inside of a comment begins a second one."""
    keys = set()
    for number, raw in enumerate(data.split(b"\n"), 1):
        line = raw.strip(b" \t\r")
        if line and not line.startswith(b"#"):
            try:
                key = _allowed(line.decode(), namespace)
            except ValueError as problem:
                raise BadInput(f"allowed signers, line {number}: {problem}",
                               hint="NAME namespaces=\"sealtune-report\" ssh-ed25519 AAAA…") from problem
            if key:
                keys.add(key)
    return frozenset(keys)


def trusted_signers(data: bytes, namespace: str = NAMESPACE) -> frozenset[PublicKey]:
    """The same, or the one key of a public key file as ssh-keygen writes it, which names nobody and may sign anything."""
    if data.startswith(KIND + b" ") and data.strip().count(b"\n") == 0:
        try:
            return frozenset({PublicKey.parse(data.decode().strip())})
        except ValueError as problem:
            raise BadInput(str(problem), hint="ssh-keygen -y -f controller.key makes the public key") from problem
    return allowed_signers(data, namespace)


def _allowed(line: str, namespace: str) -> PublicKey | None:
    """None for a key of another kind or namespace. Certificates and dates are refused rather than half understood."""
    found = SIGNER_LINE.fullmatch(line)
    if not found:
        raise ValueError("a name, at most the option namespaces=\"…\", a key type and a key are needed")
    patterns = (found["namespaces"] or "*").split(",")
    if found["kind"] != KIND.decode() or not any(fnmatch.fnmatchcase(namespace, p) for p in patterns):
        return None
    return PublicKey.parse(f"{found['kind']} {found['key']}")


# ---- the wire form ------------------------------------------------------------------------------------------


def _signed(message: bytes, namespace: bytes) -> bytes:
    return MAGIC + _string(namespace) + _string(b"") + _string(HASH) + _string(hashlib.sha512(message).digest())


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


def _strings(data: bytes, count: int) -> list[bytes]:
    """Exactly `count` strings and nothing after them."""
    found = []
    for _ in range(count):
        if len(data) < 4:
            raise BadSignature("cut short")
        length, = struct.unpack(">I", data[:4])
        if length > len(data) - 4:
            raise BadSignature("cut short")
        found.append(data[4:4 + length])
        data = data[4 + length:]
    if data:
        raise BadSignature("something follows the signature")
    return found


def _armour(blob: bytes) -> bytes:
    text = base64.b64encode(blob)
    lines = [text[at:at + COLUMNS] + b"\n" for at in range(0, len(text), COLUMNS)]
    return BEGIN + b"".join(lines) + END


def _bare(armoured: bytes) -> bytes:
    inner = armoured[len(BEGIN):-len(END)]
    try:
        blob = base64.b64decode(inner.replace(b"\n", b""), validate=True)
    except binascii.Error as problem:
        raise BadSignature("not an SSH signature") from problem
    if _armour(blob) != armoured:
        raise BadSignature("not an SSH signature in its one spelling")
    return blob
