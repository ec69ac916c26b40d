"""Wish, offer, order, lease: what the story knows about renting, whatever the market."""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

from .document import PRIVATE, Json
from .money import Money, Rate
from .names import Digest, Instant, LeaseId, LeaseKey, Reason


@dataclass(frozen=True, slots=True)
class HardwareClaim:
    gpu: str
    count: int
    vram_mib: int
    ram_mib: int = 0                     # 0: nothing claimed
    disk_gib: int = 0


@dataclass(frozen=True, slots=True)
class Wish:
    """The run file's `node:`. Empty or zero: anything will do. `min_reliability` in thousandths."""

    gpu: tuple[str, ...] = ()
    vram_gib: int = 0
    ram_gib: int = 0
    disk_gib: int = 0
    min_reliability: int = 0


@dataclass(frozen=True, slots=True)
class Offer:
    market: str
    offer_id: str
    rate: Rate
    claim: HardwareClaim | None          # None: the user's own server, nothing is claimed
    max_seconds: int
    fee_bps: int = 0                     # the market's fee, taken out of what is paid
    gas: Money | None = None             # estimate for a whole life, in the chain's own coin
    reliability: int | None = None       # thousandths; None: not published
    provider: str = ""
    stranger: bool = True                # False: the user's own machine
    bounded: bool = True                 # False: nothing but this laptop ends the lease
    simulated: bool = False              # a lab's offer
    shown: str = ""                      # the user's own machine: what it showed when it was looked at, for people
    where: str = field(default="", metadata=PRIVATE)   # the same: its address


@dataclass(frozen=True, slots=True)
class Funding:
    """Money that is moved to where a second key of this laptop may rent with it, and do nothing else, because the wallet
    signs but does not send. `facts` is the driver's own: whose, by which key, with whom, under which number."""

    market: str
    key: str                             # its own name
    most: Money
    until: Instant                       # from then on nothing is spent, and anyone may send home what is left
    facts: Mapping[str, Json] = field(default_factory=lambda: MappingProxyType({}), metadata=PRIVATE)


@dataclass(frozen=True, slots=True)
class Funded:
    at: Instant
    receipt: str | None                  # transaction hash; None: it was there already


@dataclass(frozen=True, slots=True)
class Refunded:
    """What went home when it was closed. `left` None: it was closed before, or by others."""

    left: Money | None
    coin: Money                          # of the second key, in the chain's own coin
    gas: Money                           # spent by us on opening and closing it


@dataclass(frozen=True, slots=True)
class Terms:
    """What the run wants from any offer."""

    key: LeaseKey
    ssh_public_key: str                  # ed25519, no comment
    seconds: int                         # first funded slice
    pay_at_most: Money
    check_seconds: int                   # planned install plus challenge; a shorter inspection window is refused
    funding: Funding | None = None       # what pays, where it is not the wallet itself


@dataclass(frozen=True, slots=True)
class Order:
    """An offer plus terms, checked and priced by the driver: everything `open` and `find` need.

    `facts` is the driver's own: signed quote, ids that existed before, machine id. Opaque to the story.
    """

    market: str
    key: LeaseKey
    offer_id: str
    claim: HardwareClaim | None
    rate: Rate
    seconds: int
    deposit: Money
    placed_at: Instant
    start_by: Instant
    keep: tuple[str, ...] = ()           # public parts that may stay on the node: environment, base model
    facts: Mapping[str, Json] = field(default_factory=lambda: MappingProxyType({}), metadata=PRIVATE)
    funding: str = ""                    # the key of the Funding that pays; "": the wallet itself


@dataclass(frozen=True, slots=True)
class Lease:
    market: str
    key: LeaseKey
    lease_id: LeaseId
    rate: Rate
    opened_at: Instant
    ssh_public_key: str = ""             # by which `look` finishes what `open` began: the key to be let in


@dataclass(frozen=True, slots=True)
class Access:
    """How to reach the node. Written down once; from then on every connection must match it."""

    host: str = field(metadata=PRIVATE)
    port: int = field(metadata=PRIVATE)
    user: str = field(metadata=PRIVATE)
    host_keys: tuple[str, ...]           # "ssh-ed25519 AAAA…", no comment; at least one
    trust: str                           # signed | fingerprint | known_hosts | confirmed
    identity: str = field(default="", metadata=PRIVATE)   # "": the lease's own key; "agent"; else the user's key file


@dataclass(frozen=True, slots=True)
class LeaseView:
    """The lease as the world shows it, up to 15 s ago. Instants are on our clock: the driver converts."""

    as_of: Instant
    access: Access | None
    funded_until: Instant | None         # None: no end but the budget
    inspect_until: Instant | None        # until then `end` for HARDWARE costs nothing
    cost_so_far: Money
    closed_by: str | None                # renter | provider | expiry | market
    longest: Instant | None = None       # no hold goes beyond: the quote's or the offer's own end
    self_end: tuple[str, ...] = ()       # a command by which the node can end itself, if the market gave it one


@dataclass(frozen=True, slots=True)
class Hold:
    """Keep the lease until then: an absolute target, so that a repeat costs nothing."""

    lease: Lease
    until: Instant
    total_at_most: Money


@dataclass(frozen=True, slots=True)
class Ending:
    lease: Lease
    reason: Reason
    evidence: Digest | None              # hardware report, for HARDWARE
    anchor: Digest | None                # salted digest of the signed report; None: there is none


@dataclass(frozen=True, slots=True)
class Ended:
    at: Instant
    by: str
    receipt: str | None                  # transaction hash, where there is one
    full_refund: bool
    node_gone: bool                      # False on the user's own server: what is left there is still ours


@dataclass(frozen=True, slots=True)
class Found:
    """A lease that the world shows and that carries our mark, known to this laptop or not."""

    lease: Lease
    view: LeaseView
    run_tag: str | None
