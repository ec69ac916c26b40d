"""What a provider says about itself: one machine, one offer, one price, and where its own files lie.

Read once, checked whole, frozen. A wrong file is refused with the field's name before anything listens.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from pydantic import ValidationError

from ..domain.document import Json, decode, parse
from ..domain.escrow import ZERO_ADDRESS, EscrowFacts
from ..domain.money import USDC, Money
from ..errors import BadInput
from ..marketplace.open_market.wire import OfferAnswer, ReadyFields, Spec, first_fault

MOST_BYTES = 64 * 1024


@dataclass(frozen=True, slots=True)
class OfferConfig:
    """`price_per_hour` is money in words, "0.45 USDC"; `reliability` in thousandths, None where nothing is claimed."""

    offer_id: str
    gpu: str
    count: int
    vram_mib: int
    price_per_hour: str
    ram_mib: int = 0
    disk_gib: int = 0
    driver: str = ""
    simulated: bool = False
    fee_bps: int = 0
    fee_recipient: str = ZERO_ADDRESS
    min_seconds: int = 60
    max_seconds: int = 86_400
    inspection_seconds: int = 900
    start_seconds: int = 600             # so long after the deposit we may take to let the renter in
    reliability: int | None = None

    def spec(self) -> dict[str, Json]:
        """As it is served; its digest is in every quote."""
        return {"gpu": self.gpu, "count": self.count, "vram_mib": self.vram_mib, "ram_mib": self.ram_mib,
                "disk_gib": self.disk_gib, "driver": self.driver, "simulated": self.simulated}

    def units_per_hour(self) -> int:
        return Money.parse(self.price_per_hour, USDC).units


@dataclass(frozen=True, slots=True)
class ProviderConfig:
    """Paths may be relative to the working directory. `lock_out` is a command that ends all sessions of a renter.

    It listens in plain HTTP: but on loopback a proxy with TLS must stand before it, since renters accept no less."""

    listen_host: str
    listen_port: int                     # 0: any free one
    rpc: str
    chain_id: int
    escrow: str
    token: str
    key_file: str
    state_folder: str                    # what must not be forgotten: guests, signed transactions
    authorized_keys: str
    node_host: str
    node_port: int
    node_user: str
    node_host_keys: tuple[str, ...]
    offer: OfferConfig
    name: str = ""
    poll_seconds: int = 2
    quote_seconds: int = 120             # a quote's life; a deposit that is older than its quote does not go through
    lock_out: tuple[str, ...] = ()
    withdraw_at: str = ""                # "5.00 USDC": fetch what the contract owes us from that sum on; "": never

    def facts(self) -> EscrowFacts:
        return EscrowFacts(self.chain_id, self.escrow, self.token)

    def offered(self, provider: str) -> OfferAnswer:
        """The offer as it is served. `provider`: our address. ValidationError when it breaks the protocol."""
        offer = self.offer
        Spec.model_validate(offer.spec())
        return OfferAnswer(
            offer_id=offer.offer_id, provider=provider, spec=offer.spec(), price_per_hour=str(offer.units_per_hour()),
            fee_bps=offer.fee_bps, min_seconds=offer.min_seconds, max_seconds=offer.max_seconds,
            inspection_seconds=offer.inspection_seconds, reliability=offer.reliability,
        )


def load(path: Path) -> ProviderConfig:
    """The provider's file. BadInput names what is wrong with it."""
    try:
        with path.open("rb") as file:
            tree = parse(file.read(MOST_BYTES))
        config = decode(ProviderConfig, tree)
        check(config)
    except OSError as problem:
        raise BadInput(f"cannot read {path}: {problem.strerror}") from problem
    except ValidationError as problem:
        raise BadInput(f"{path}: {first_fault(problem)}") from None
    except (ValueError, TypeError, AttributeError) as problem:
        raise BadInput(f"{path}: {problem}") from problem
    return config


def check(config: ProviderConfig) -> None:
    """Everything that a renter would refuse is refused here, by the same models."""
    config.offered(ZERO_ADDRESS)
    nothing = "0x" + "00" * 32
    ReadyFields(rentalId=nothing, host=config.node_host, port=config.node_port, user=config.node_user,
                hostKeys=list(config.node_host_keys), accessHash=nothing, notBefore=0, salt=nothing)
    if config.withdraw_at:
        Money.parse(config.withdraw_at, USDC)
    if config.poll_seconds < 1 or config.quote_seconds < 10:
        raise ValueError("poll_seconds must be at least 1 and quote_seconds at least 10")
    if config.offer.fee_bps and config.offer.fee_recipient == ZERO_ADDRESS:
        raise ValueError("fee_bps needs a fee_recipient")
