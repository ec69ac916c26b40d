"""Big documents beside the journal, each a file named by its digest (port Evidence)."""
from __future__ import annotations

import re
from pathlib import Path

from ..domain.document import sha256
from ..domain.names import Digest
from . import files
from .files import EvidenceTrouble

NAME = re.compile(r"sha256:([0-9a-f]{64})")
MOST_BYTES = 16 * 1024 * 1024


class EvidenceFolder:
    """The folder `evidence` of one run, or of what was exported from it."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def keep(self, document: bytes) -> Digest:
        """On disk on return. EvidenceTrouble above 16 MiB."""
        if len(document) > MOST_BYTES:
            raise EvidenceTrouble(f"evidence of {len(document)} bytes, more than {MOST_BYTES}")
        digest = sha256(document)
        if self.find(digest) is None:
            files.write(self._folder / digest.removeprefix("sha256:"), document)
        return digest

    def read(self, digest: Digest) -> bytes:
        """EvidenceTrouble when it is missing or not what its name says."""
        document = self.find(digest)
        if document is None:
            raise EvidenceTrouble(f"no evidence {digest}, or it was changed")
        return document

    def find(self, digest: Digest) -> bytes | None:
        """None also for what is no digest: nothing lies under such a name."""
        name = NAME.fullmatch(digest)
        document = files.read(self._folder / name[1], MOST_BYTES) if name else None
        return document if document is not None and sha256(document) == digest else None
