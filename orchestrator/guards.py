"""What must hold before the story goes on. Each `must` raises what its failing means for the run; none changes anything."""
from __future__ import annotations

from collections.abc import Sequence

from . import steps
from .domain.evidence import HardwareReport
from .domain.lease import LeaseView, Offer
from .domain.names import SPENT_OFFERS, Reason
from .domain.progress import Finished
from .domain.training import Agreement
from .errors import LeaveNode, Refused, StopRun
from .house import House, Site
from .ledger import intent_of, leases, noted, result_of
from .task import Leaving

MEND_IT = "mend it there, then sealtune run RUNFILE; README, 'your own server', says what a server needs"
SECONDS_TO_REJECT = 150                  # a challenge must be over this long before the inspection window closes


def given_up(house: House) -> bool:
    """Keys that were destroyed do not come back: a run that ended without its adapter stays ended. Begun is enough: what a
    crash left of the key is not known."""
    forgotten = intent_of(house, steps.FORGET)
    return forgotten is not None and all(result_of(house.at(s), steps.COLLECT) is None for s in leases(house))


def stopped_by_hand(house: House) -> bool:
    """A person gave the newest node back before the adapter was home: to go on is to rent another one."""
    site = house.at(([*leases(house)] or ["run"])[-1])
    left = noted(site, "left", Leaving)
    return left is not None and left.reason is Reason.STOPPED and result_of(site, steps.COLLECT) is None


def must_be_as_agreed(offer: Offer, agreed: Agreement) -> None:
    """A run stays on the market, and with the risks, that the person confirmed."""
    now, then = ((o.market, o.stranger, o.bounded, o.simulated) for o in (offer, agreed))
    if now != then:
        raise Refused(f"confirmed for market {agreed.market}, offered now by market {offer.market} on other terms",
                      hint="sealtune run starts a new run, and asks anew")


def must_match(report: HardwareReport) -> None:
    if report.mismatch:
        raise LeaveNode(Reason.HARDWARE, report.evidence, f"{report.mismatch.text}: {report.mismatch.why}")


def must_be_in_time(site: Site, met: LeaseView) -> None:
    """A challenge after the inspection window could not give the money back any more."""
    if met.inspect_until and site.clock.now() > met.inspect_until - SECONDS_TO_REJECT:
        raise LeaveNode(Reason.TOO_SLOW)


def must_be_done(end: Finished) -> None:
    if end.how in ("lost", "deadline"):
        raise LeaveNode(Reason.NODE_LOST if end.how == "lost" else Reason.LEASE_ENDED)
    if end.how != "done":
        raise StopRun(Reason.FAILED, f"training ended as {end.how}: {end.error or 'no reason given'}", hint="sealtune logs")


def must_be_worth_another_try(agreed: Agreement, tried: Sequence[tuple[Site, Leaving]]) -> None:
    """There is only one own server: what it cannot do once is the answer; one that was lost may be back. StopRun."""
    for _, why in tried if not agreed.stranger else ():
        if why.reason in SPENT_OFFERS:
            raise StopRun(why.reason, f"the server {agreed.where or 'of the run'} was tried and left: "
                                      f"{why.detail or why.reason}", hint=MEND_IT)
