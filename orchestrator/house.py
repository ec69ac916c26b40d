"""The ports, bundled: a House for one run, a Site for one scope in it (the run itself, or one lease)."""
from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from . import ports
from .domain.names import RunId


@dataclass(frozen=True, slots=True)
class House:
    run: RunId
    home: Path                           # this run's folder: sealed files, records, evidence
    journal: ports.Journal
    market: ports.Market
    nodes: ports.Nodes
    vault: ports.Vault
    sealer: ports.Sealer
    datasets: ports.Datasets
    hub: ports.Hub
    payloads: ports.Payloads
    results: ports.Results
    notary: ports.Notary
    clock: ports.Clock
    entropy: ports.Entropy
    observer: ports.Observer
    person: ports.Person
    scope: str = "run"

    def at(self, scope: str) -> Site:
        return replace(self, scope=scope)

    @property
    def shelf(self) -> Path:
        """Where this lease's sealed files and records come to lie."""
        return self.home / self.scope


Site = House                             # a House seen from one scope; the same ports, another name for readers
