"""The checked values of a run file and of the settings. Plain and frozen; standard library only."""
from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from ..domain.lease import Wish
from ..domain.money import USDC, Money
from ..domain.price import Price

PUBLIC_HUB = "https://huggingface.co"
MOST_DEPOSIT = Money(50 * 10**6, USDC)   # into an unaudited contract, unless the person says otherwise


@dataclass(frozen=True, slots=True)
class SshHost:
    """The user's own server. None: as the user's ssh configuration has it for this alias."""

    host: str
    port: int | None = None
    user: str | None = None
    identity: Path | None = None         # a private key file; None: the alias's, or an agent
    fingerprint: str | None = None       # "SHA256:…" of the host key; None: known_hosts, or asked once
    keep: bool = True                    # the public parts (environment, base model) stay there for the next run


@dataclass(frozen=True, slots=True)
class RunFile:
    """One run as the user wants it. Paths are absolute; `knobs` holds only what was written, sorted by name."""

    path: Path
    model: str                           # hub id
    revision: str
    dataset: Path
    format: str                          # auto, or a name of dataset/formats.py
    method: str                          # lora | qlora
    market: str                          # open | lab | ssh
    seconds: int | None                  # at most, in all; None: auto
    budget: Money | None                 # None only for the own server, which costs nothing
    output: Path
    wish: Wish
    knobs: tuple[tuple[str, str], ...]
    seed: int
    engine: str                          # trl | rehearsal
    ssh: SshHost | None


@dataclass(frozen=True, slots=True)
class OpenMarket:
    """Where the open market and its escrow are. Addresses are 0x-hex; "": the chain's own USDC, and the address at which
    this version's escrow is deployed everywhere."""

    url: str
    rpc: tuple[str, ...]                 # nodes of the chain, the preferred one first
    escrow: str
    token: str
    chain_id: int
    keystore: Path
    account: str = ""                    # of a wallet in the browser, which signs and does not send; "": the keystore's
    password_file: Path | None = None
    accept_unaudited: bool = False       # needed where the money is real
    most_deposit: Money = MOST_DEPOSIT   # a limit where the money is real


@dataclass(frozen=True, slots=True)
class Policy:
    operator_can_read: bool = False      # accepted once and for all: a node's operator can read what it computes


@dataclass(frozen=True, slots=True)
class Settings:
    """`settings.yaml` of the state directory; every part is optional."""

    state: Path
    hub: str = PUBLIC_HUB
    open: OpenMarket | None = None
    policy: Policy = field(default_factory=Policy)
    contact_seconds: int = 120           # a run that was not heard of for this long is lost
    silence_seconds: int = 43_200        # a node that does not hear from us for this long wipes itself
    patience_seconds: int = 600          # for which a silent node is waited for
    prices: tuple[Price, ...] = ()       # of other places, instead of or beside the plan's own table
