"""A sealed file cut in parts: what sealing makes and the node's transfer drains. Neither knows the other."""
from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from .document import PRIVATE
from .names import Digest

PART_BYTES = 8 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class Spool:
    """One file, `folder/name`, sent in parts of PART_BYTES; part digests in order ("sha256:…")."""

    name: str                            # the name on the node, from our list
    sha256: Digest
    size: int
    parts: tuple[Digest, ...]
    folder: str = field(metadata=PRIVATE)

    @property
    def path(self) -> Path:
        return Path(self.folder) / self.name


@dataclass(frozen=True, slots=True)
class Payload:
    """The pinned code and the lock that fits this node."""

    digest: Digest
    lock: Digest
    variant: str                         # cpu | cpu-pypi | cu128 | cu13 | rehearsal


@dataclass(frozen=True, slots=True)
class Installed:
    payload: Digest
    lock: Digest
    seconds: int
    packages: int = 0


@dataclass(frozen=True, slots=True)
class Figures:
    """Evaluation of one model on the held-out rows; decimals as strings, exact_match "" for text rows."""

    exact_match: str
    loss: str


@dataclass(frozen=True, slots=True)
class Adapter:
    """Opened, checked, renamed: finite tensors under the expected names, config rebuilt here."""

    sha256: Digest                       # of adapter_model.safetensors
    base: Figures
    adapter: Figures
    held_out: int
    tensors: int
    folder: str = field(metadata=PRIVATE)
    warnings: tuple[str, ...] = ()
