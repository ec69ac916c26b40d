"""A rental, as the contract shows it, in the story's words: view, settlement, found lease. Pure."""
from __future__ import annotations

from ...domain.escrow import Rental
from ...domain.lease import Access, Found, Lease, LeaseView
from ...domain.money import USDC, Money, Rate, Settlement
from ...domain.names import Digest, Instant, LeaseId, LeaseKey
from .times import ChainTime

NO_DIGEST = "0x" + "00" * 32


def view_of(rental: Rental, access: Access | None, now: Instant, time: ChainTime) -> LeaseView:
    """Before the clock starts, `funded_until` is the latest end that what was paid can lead to."""
    begun = rental.started_at > 0
    ends_at = rental.ends_at if begun else rental.start_by + rental.seconds
    return LeaseView(
        as_of=now, access=access, funded_until=time.ours(ends_at),
        inspect_until=time.ours(rental.inspect_until) if begun else None,
        cost_so_far=Money(rental.accrued, USDC), closed_by=closed_by(rental),
        longest=time.ours(rental.started_at + rental.max_seconds) if begun else None,
    )


def closed_by(rental: Rental) -> str | None:
    """Who ended it; time alone is "expiry", also before anybody has closed it on the chain."""
    if rental.status in ("expired", "no-show") or rental.outcome in ("expired", "no-show"):
        return "expiry"
    if rental.status != "closed":
        return None
    return rental.closed_by if rental.closed_by in ("renter", "provider") else "expiry"


def settlement(rental: Rental, credited: int, gas: Money) -> Settlement:
    """`credited`: the part of the refund that still waits in the contract."""
    return Settlement(
        deposit=Money(rental.deposit, USDC), paid=Money(rental.paid, USDC), fee=Money(rental.fee, USDC),
        refunded=Money(rental.refunded - credited, USDC), credited=Money(credited, USDC), gas=gas, final=True,
    )


def found(market: str, rental: Rental, now: Instant, time: ChainTime) -> Found:
    """A rental of our wallet, from the chain alone: without access, since only its run has the key to that."""
    lease = Lease(market, LeaseKey(rental.key.removeprefix("0x")), LeaseId(rental.id),
                  Rate(Money(rental.price_per_hour, USDC)), time.ours(rental.created_at))
    return Found(lease, view_of(rental, None, now, time), None)


def hexed(digest: Digest | None) -> str:
    return "0x" + digest.removeprefix("sha256:") if digest else NO_DIGEST
