"""age, as the job needs it: one identity from standard input opens what was shipped, one recipient seals what leaves.

Nothing is written before it is sealed, and nothing opened is used before the whole of it was authenticated.
A file appears under its name only when it is complete and on disk; then a record announces it.
"""
from __future__ import annotations

import hashlib
import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from remote_payload.faults import ArtifactTooLarge, BadKey, BadSpec, DamagedSeal, DigestMismatch, WrongKey
from remote_payload.progress import Records

if TYPE_CHECKING:
    from pyrage import x25519

KEY_MAX = 4096


def read_key() -> x25519.Identity:
    """The data identity, one line on standard input, then its end. Raises BadKey."""
    from pyrage import IdentityError, x25519
    raw = sys.stdin.buffer.read(KEY_MAX + 1)
    try:
        return x25519.Identity.from_str(raw.decode("ascii").strip())
    except (IdentityError, UnicodeDecodeError):
        raise BadKey from None


def open_sealed(path: Path, identity: x25519.Identity, digest: str) -> bytes:
    """The plain bytes of a shipped file, in memory. Raises DigestMismatch, WrongKey, DamagedSeal."""
    import pyrage
    sealed = path.read_bytes()
    if f"sha256:{hashlib.sha256(sealed).hexdigest()}" != digest:
        raise DigestMismatch
    try:
        return bytes(pyrage.decrypt(sealed, [identity]))
    except pyrage.DecryptError as error:     # one type for both; the words tell them apart
        raise (WrongKey if "matching keys" in str(error) else DamagedSeal) from None
    except (OSError, ValueError):
        raise DamagedSeal from None


class Publisher:
    """Seals to the laptop's recipient and publishes in `out`; no file passes `limit` bytes."""

    def __init__(self, out: Path, recipient: str, limit: int, records: Records) -> None:
        from pyrage import RecipientError, x25519
        try:
            self._recipient = x25519.Recipient.from_str(recipient)
        except RecipientError:
            raise BadSpec from None
        self._out, self._limit, self._records = out, limit, records
        self._checkpoints: list[Path] = []

    def publish(self, name: str, plain: bytes) -> None:
        """Seal, write aside, flush to disk, rename, announce. Raises ArtifactTooLarge."""
        import pyrage
        sealed = pyrage.encrypt(plain, [self._recipient])
        if len(sealed) > self._limit:
            raise ArtifactTooLarge
        part = self._out / f"{name}.part"
        with part.open("wb") as file:
            file.write(sealed)
            file.flush()
            os.fsync(file.fileno())
        part.replace(self._out / name)
        _flush_folder(self._out)
        self._records.emit("published", name=name, bytes=str(len(sealed)),
                           sha256=f"sha256:{hashlib.sha256(sealed).hexdigest()}")

    def checkpoint(self, step: int, plain: bytes, keep: int) -> None:
        """Publishes checkpoint-<step>.age; older ones of this job than the newest `keep` are removed."""
        name = f"checkpoint-{step}.age"
        self.publish(name, plain)
        self._checkpoints.append(self._out / name)
        while len(self._checkpoints) > max(1, keep):
            self._checkpoints.pop(0).unlink(missing_ok=True)


def _flush_folder(folder: Path) -> None:
    handle = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
