"""Keeping a lease while its job runs: how it stands, what it may still cost, and paying for its next slice."""
from __future__ import annotations

from dataclasses import replace

from . import steps
from .domain.lease import Hold, Lease, LeaseView
from .domain.money import Money
from .domain.names import Instant
from .domain.training import Agreement
from .errors import NothingMade, OutcomeUnknown, Refused, Transient
from .house import Site
from .ledger import known, leases, once, result_of
from .planning.watch import Policy
from .task import Task

FRESH_SECONDS = 10                       # a view this young need not be asked for again
SECONDS_TO_WIND_DOWN = 600               # stop, take home, wipe, end


def budget_left(site: Site, agreed: Agreement) -> Money:
    """The confirmed worst case less what earlier leases of this run cost."""
    left = agreed.worst_case
    for scope in leases(site):
        settled = result_of(site.at(scope), steps.SETTLE) if scope != site.scope else None
        if settled:                      # an earlier lease is settled before the next one begins
            left = left - (settled.paid + settled.fee)
    return left


def policy_of(site: Site, task: Task, agreed: Agreement) -> Policy:
    started = known(result_of(site, steps.START))
    return Policy(budget_left(site, agreed), agreed.slice_seconds, SECONDS_TO_WIND_DOWN, task.patience,
                  Instant(started.at + agreed.seconds + SECONDS_TO_WIND_DOWN))


def glance(site: Site, lease: Lease, last: LeaseView) -> LeaseView:
    """The lease as it stands; the last view while the market does not answer. The job does not need it."""
    if site.clock.now() - last.as_of < FRESH_SECONDS:
        return last
    try:
        return site.market.look(lease)
    except (Transient, Refused):
        return replace(last, as_of=site.clock.now())         # not news: so that it is not asked every second


def stay(site: Site, hold: Hold, view: LeaseView) -> LeaseView:
    """Pay for the next slice. An unreachable market is asked again on the next turn, the same hold."""
    try:
        return once(site, steps.HOLD, lambda: hold, item=str(hold.until))
    except (Transient, Refused, OutcomeUnknown):
        return view


def stay_to_the_end(site: Site, lease: Lease, agreed: Agreement) -> LeaseView:
    """Pay as far as was confirmed and the offer goes, since nobody will be there to pay later."""
    view = glance(site, lease, known(result_of(site, steps.MEET)))
    budget = budget_left(site, agreed)
    most = lease.opened_at + min(agreed.seconds, lease.rate.affordable(budget))
    until = Instant(min(view.longest or most, most))
    if view.funded_until is None or until <= view.funded_until:
        return view
    try:
        return stay(site, Hold(lease, until, budget), view)
    except NothingMade:                  # then it ends earlier, at the time that the view says
        return view


def at_most(site: Site, lease: Lease, until: Instant, agreed: Agreement) -> Money:
    """What this lease can cost until then; never more than was confirmed."""
    cost, left = lease.rate.ahead(until - lease.opened_at), budget_left(site, agreed)
    return cost if left.covers(cost) else left
