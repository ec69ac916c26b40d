"""A street with one stall: a provider that really listens on loopback, a renter's driver, and an escrow in memory."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

from orchestrator.domain.lease import Lease, LeaseView, Order, Terms, Wish
from orchestrator.domain.money import USDC, Money
from orchestrator.domain.names import LeaseKey
from orchestrator.marketplace.open_market.driver import OpenMarket
from orchestrator.provider.access import Door
from orchestrator.provider.agent import Agent
from orchestrator.provider.config import OfferConfig, ProviderConfig
from orchestrator.provider.serve import Provider
from orchestrator.provider.store import Store

from .clock import StoppedClock
from .escrow import FACTS, Contract, FakeEscrow, FakeProviderChain, wallet

SSH_KEY = "ssh-ed25519 " + "AAAAC3NzaC1lZDI1NTE5AAAAI" + "A" * 43
HOST_KEY = "ssh-ed25519 " + "AAAAC3NzaC1lZDI1NTE5AAAAI" + "B" * 43
RICH = Money(8_000_000, USDC)
T = TypeVar("T")


def provider_config(folder: Path, **changes: object) -> ProviderConfig:
    offer: dict[str, object] = {
        "offer_id": "lab-1", "gpu": "Simulated RTX 4090", "count": 1, "vram_mib": 24_564, "price_per_hour": "0.45 USDC",
        "ram_mib": 64_000, "disk_gib": 200, "driver": "580.1", "simulated": True, "fee_bps": 250,
        "fee_recipient": "0x" + "fe" * 20, "max_seconds": 36_000, "reliability": 990,
    }
    offer.update({name: changes.pop(name) for name in list(changes) if name in OfferConfig.__dataclass_fields__})
    fields: dict[str, object] = {
        "name": "the lab", "listen_host": "127.0.0.1", "listen_port": 0, "rpc": "http://127.0.0.1:1",
        "chain_id": FACTS.chain_id, "escrow": FACTS.escrow, "token": FACTS.token, "key_file": "unused",
        "state_folder": str(folder / "provider"), "authorized_keys": str(folder / "authorized_keys"),
        "node_host": "127.0.0.1", "node_port": 2222, "node_user": "renter", "node_host_keys": (HOST_KEY,),
        "poll_seconds": 1, **changes,
    }
    return ProviderConfig(offer=OfferConfig(**offer), **fields)  # type: ignore[arg-type]


@dataclass
class Street:
    """`turn()` is one look of the provider at the chain; its own watch does the same once a second."""

    folder: Path
    clock: StoppedClock
    contract: Contract
    escrow: FakeEscrow
    chain: FakeProviderChain
    agent: Agent
    provider: Provider
    market: OpenMarket
    locked_out: list[int] = field(default_factory=list)

    def terms(self, name: str = "1", seconds: int = 3600, **changes: object) -> Terms:
        fields = {"key": LeaseKey(name.rjust(64, "0")), "ssh_public_key": SSH_KEY, "seconds": seconds,
                  "pay_at_most": RICH, "check_seconds": 600, **changes}
        return Terms(**fields)  # type: ignore[arg-type]

    def order(self, **changes: object) -> Order:
        return self.market.prepare(self.market.offers(Wish())[0], self.terms(**changes))  # type: ignore[arg-type]

    def begun(self, **changes: object) -> tuple[Lease, LeaseView]:
        """A lease whose node is ready."""
        lease = self.market.open(self.order(**changes))
        return lease, until(lambda: self.market.look(lease), lambda view: view.access is not None)

    def again(self) -> OpenMarket:
        """The driver of another process."""
        return OpenMarket(self.provider.url, self.escrow, self.clock, ("environment", "base model"))

    def admitted(self) -> str | None:
        return Door(self.folder / "authorized_keys").admitted()


def until(ask: Callable[[], T], good: Callable[[T], bool], seconds: float = 10) -> T:
    """Ask until it is so. AssertionError with the last answer when it does not become so."""
    ends = time.monotonic() + seconds
    while not good(answer := ask()):
        assert time.monotonic() < ends, answer
        time.sleep(0.02)
    return answer


@contextmanager
def street(folder: Path, **changes: object) -> Iterator[Street]:
    """`changes`: fields of ProviderConfig or OfferConfig that differ from the lab's."""
    clock = StoppedClock()
    contract = Contract(clock)
    renter, owner = wallet(), wallet()
    contract.mint(renter.address, 100_000_000)
    escrow, chain = FakeEscrow(contract, renter), FakeProviderChain(contract, owner)
    config = provider_config(folder, **changes)
    locked_out: list[int] = []
    agent = Agent(config, chain, Store(Path(config.state_folder)), Door(Path(config.authorized_keys)),
                  lambda: locked_out.append(clock.now()))
    with Provider(config, agent, chain, chain.read_request) as provider:
        market = OpenMarket(provider.url, escrow, clock, ("environment", "base model"))
        yield Street(folder, clock, contract, escrow, chain, agent, provider, market, locked_out)
