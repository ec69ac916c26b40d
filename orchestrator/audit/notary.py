"""Signs what the journal says (port Notary): reports per lease, and the closing record with the exported log.

Both are pure functions of the rows, and an Ed25519 signature of the same bytes is the same, so doing it again
after a crash changes nothing.
"""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..domain.document import sha256
from ..domain.event import Event, head
from ..domain.evidence import ReportOrder, SealedReport
from ..domain.names import Digest
from . import files, log, sshsig
from .closing import closing
from .evidence import EvidenceFolder
from .files import EvidenceTrouble
from .report import Cover, anchor, report

if TYPE_CHECKING:
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

REPORT, CLOSING, EVENTS, SIGNATURE = "report.json", "closing.json", "events.jsonl", ".sig"


class Notary:
    """`home` is the run's folder and carries its id as a name; `key_path` an OpenSSH Ed25519 key."""

    def __init__(self, home: Path, key_path: Path, evidence: EvidenceFolder, tool_version: str) -> None:
        self._home, self._key_path, self._evidence, self._tool = home, key_path, evidence, tool_version

    def seal(self, order: ReportOrder, events: Sequence[Event]) -> SealedReport:
        """EvidenceTrouble when the order was made over other rows."""
        covered = events[:order.count]
        if len(covered) != order.count or head(covered) != order.head:
            raise EvidenceTrouble(f"the report of {order.scope} was ordered over other rows than the journal has")
        rows, key = log.of_events(covered), self._key()
        data = report(Cover(self._home.name, order.scope, order.lease_key, self._tool), rows,
                      self._document(rows.of(order.scope)))
        self._write(self._home / order.scope / REPORT, data, key)
        digest = sha256(data)
        return SealedReport(digest, Digest(anchor(order.salt, digest)), sshsig.public_key(key).fingerprint)

    def close(self, events: Sequence[Event]) -> None:
        files.write(self._home / EVENTS, log.to_bytes(events))
        self._write(self._home / CLOSING, closing(self._home.name, self._tool, log.of_events(events)), self._key())

    def _document(self, lease: log.Scope) -> bytes | None:
        answer = lease.result("wipe")
        return self._evidence.find(answer["evidence"]) if answer else None

    def _write(self, path: Path, data: bytes, key: Ed25519PrivateKey) -> None:
        files.write(path, data)
        files.write(path.with_name(path.name + SIGNATURE), sshsig.sign(key, data))

    def _key(self) -> Ed25519PrivateKey:
        pem = files.read(self._key_path, 64 * 1024)
        if pem is None:
            raise EvidenceTrouble(f"no signing key {self._key_path}", hint="put the backup of controller.key back")
        return sshsig.load_key(pem)
