"""The run's budgets: money that a second key of this laptop may rent with, where the wallet signs and does not send.

One signature pays for all leases of a run, as long as the money set aside reaches for what was agreed; refunds of a lease
go to the owner and not back into it. A scope of its own for each, so that its release is owed like any other.
"""
from __future__ import annotations

from collections.abc import Sequence

from . import steps
from .domain.lease import Funding, Offer
from .domain.money import Money
from .domain.names import Instant
from .domain.training import Agreement
from .errors import SealtuneError, StillOwed
from .house import House, Site
from .ledger import give_back, intent_of, leases, once, owes, result_of

SECONDS_OF_GRACE = 24 * 3600             # in which a run that was left alone may be gone on with, without a new signature


def funded(site: Site, agreed: Agreement, offers: Sequence[Offer], left: Money) -> Funding | None:
    """What pays for this lease, up to `left`; None where the wallet itself does. The person may be asked to sign."""
    scope = next((s for s in reversed(budgets(site)) if owes(site.at(s))), None)
    if scope and not _reaches(site, scope, agreed, left):
        give_back_budget(site.at(scope))
        scope = None
    until = Instant(site.clock.now() + agreed.seconds + SECONDS_OF_GRACE)
    wanted = intent_of(site.at(scope), steps.FUND) if scope else site.market.funding(offers, left, until)
    if wanted is not None:
        once(site.at(scope or f"budget-{len(budgets(site)) + 1}"), steps.FUND, lambda: wanted)
    return wanted


def _reaches(site: Site, scope: str, agreed: Agreement, left: Money) -> bool:
    """Whether it lasts, and holds what the run may still spend: nothing that was paid from it came back into it."""
    funding = intent_of(site.at(scope), steps.FUND)
    if funding is None or funding.until < site.clock.now() + agreed.seconds:
        return False
    rest = funding.most
    for lease in map(site.at, leases(site)):
        order, settled = intent_of(lease, steps.OPEN), result_of(lease, steps.SETTLE)
        if settled and order and order.funding == funding.key:
            rest = rest - settled.deposit
    return rest.covers(left)


def budgets(house: House) -> tuple[str, ...]:
    """Scopes of budgets in the order in which they were begun."""
    seen = dict.fromkeys(e.deed.scope for e in house.journal.events())
    return tuple(s for s in seen if s.startswith("budget-"))


def give_back_budget(site: Site) -> None:
    """Close it; what is left goes home. StillOwed when that did not succeed."""
    funding = intent_of(site, steps.FUND)
    if funding is None or not owes(site):
        return
    try:
        give_back(site, steps.REFUND, lambda: funding)
    except SealtuneError as cause:
        raise StillOwed(owes(site), str(cause)) from cause


def give_back_budgets(house: House) -> None:
    for scope in reversed(budgets(house)):
        give_back_budget(house.at(scope))
