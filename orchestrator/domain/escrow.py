"""The escrow contract's words: quote, ready message, rental. Amounts in token base units, times in chain seconds,
ids and digests as 0x-hex. Field names and order are those of the contract's EIP-712 types."""
from __future__ import annotations

from dataclasses import dataclass

ZERO_ADDRESS = "0x" + "00" * 20


@dataclass(frozen=True, slots=True)
class Quote:
    """Signed by the provider; consumed once."""

    provider: str
    renter: str
    offerId: str
    specHash: str
    pricePerHour: int
    feeBps: int
    feeRecipient: str
    minSeconds: int
    maxSeconds: int
    startWindow: int
    inspectionSeconds: int
    validUntil: int
    salt: str


@dataclass(frozen=True, slots=True)
class Ready:
    """Signed by the provider; its EIP-712 struct hash stands in the contract. Binds endpoint and host keys to a rental."""

    rentalId: str
    host: str
    port: int
    user: str
    hostKeys: tuple[str, ...]
    accessHash: str                      # sha256 of the renter's ssh public key line ("ssh-ed25519 AAAA…")
    notBefore: int
    salt: str


@dataclass(frozen=True, slots=True)
class Budget:
    """What an owner agrees to with one signature: `cap` of its money lies in the contract, for the key `session` to rent
    with until `expiry`, from the providers whose list has this hash, at no more than this price. The rest goes back."""

    owner: str
    session: str
    cap: int
    maxPricePerHour: int
    expiry: int
    providersHash: str
    salt: str


@dataclass(frozen=True, slots=True)
class OpenBudget:
    """A budget that is open, as the contract's storage shows it."""

    session: str
    left: int
    expiry: int


@dataclass(frozen=True, slots=True)
class EscrowFacts:
    """What a client must know of a deployment before it signs anything."""

    chain_id: int
    escrow: str
    token: str


@dataclass(frozen=True, slots=True)
class Rental:
    """One rental as the contract's storage shows it."""

    id: str
    key: str                             # the lease key, chosen by the renter
    renter: str
    provider: str
    status: str                          # none | funded | no-show | active | expired | closed
    price_per_hour: int
    fee_bps: int
    deposit: int
    accrued: int                         # now; after closing: paid + fee
    seconds: int                         # funded
    max_seconds: int
    created_at: int
    start_by: int
    started_at: int                      # 0 before activation
    ends_at: int                         # 0 before activation
    inspect_until: int                   # 0 before activation
    access_hash: str
    ready_hash: str
    closed_at: int                       # 0 while open
    closed_by: str                       # renter | provider | anyone | ""
    outcome: str                         # cancelled | rejected | abandoned | ended | expired | no-show | ""
    paid: int                            # to the provider, without the fee
    fee: int
    refunded: int
    report_digest: str
    budget: int = 0                      # number of the renter's budget that pays for it; 0: its wallet did

    @property
    def locked(self) -> int:
        """What the contract holds for it now."""
        return 0 if self.status in ("none", "closed") else self.deposit

    @property
    def can_still_cost(self) -> int:
        """Beyond what has accrued, if nobody ends it. Only its renter can make that more, by extending."""
        return self.deposit - self.accrued if self.status in ("funded", "active") else 0
