"""What vendors say about GPUs that are offered. Data only; a model that is not here is compared with its claim alone.

`mib` is what nvidia-smi shows for an honest card. Taken from vendor data and the PCI id list; not measured here.
"""
from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Model:
    name: str
    pci_devices: tuple[str, ...]
    compute: str
    mib: int


MODELS = (
    Model("RTX 3060", ("2503", "2504"), "8.6", 12288),
    Model("RTX 3090", ("2204",), "8.6", 24576),
    Model("RTX 4090", ("2684",), "8.9", 24564),
    Model("RTX 5090", ("2b85",), "12.0", 32607),
    Model("RTX 4000 SFF Ada", ("27b0",), "8.9", 20475),
    Model("RTX A6000", ("2230",), "8.6", 49140),
    Model("RTX 6000 Ada", ("26b1",), "8.9", 49140),
    Model("A10G", ("2237",), "8.6", 23028),
    Model("A100", ("20b5",), "8.0", 81920),
    Model("H100", ("2331", "2330"), "9.0", 81559),
    Model("H200", ("2335",), "9.0", 143771),
    Model("RTX PRO 6000", ("2bb1",), "12.0", 97887),
)
_FILLER = ("nvidia", "geforce", "simulated", "generation", "graphics", "edition", "laptop")


def words(name: str) -> tuple[str, ...]:
    """A product name without what sellers leave out: "NVIDIA GeForce RTX 4090" and "RTX 4090" are the same."""
    return tuple(w for w in re.findall(r"[a-z0-9]+", name.lower()) if w not in _FILLER)


def find(name: str) -> Model | None:
    """The model whose every word is in `name`; the longest one wins."""
    shown = set(words(name))
    fitting = [m for m in MODELS if set(words(m.name)) <= shown]
    return max(fitting, key=lambda m: len(words(m.name)), default=None)


def same(claimed: str, shown: str) -> bool:
    """Is the card that is shown the claimed one? A variant word that was not claimed ("Ti", "Super") is another card."""
    return set(words(claimed)) <= set(words(shown)) and not _variants(shown) - _variants(claimed)


def _variants(name: str) -> set[str]:
    return set(words(name)) & {"ti", "super", "ada", "mobile", "max", "q", "d"}
