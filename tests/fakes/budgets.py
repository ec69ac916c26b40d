"""The part of the small world's market where the wallet only signs: one budget at a time, closed after the leases."""
from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from orchestrator.domain.lease import Funded, Funding, Offer, Refunded
from orchestrator.domain.money import POL, USDC, Money
from orchestrator.domain.names import Instant
from orchestrator.errors import NothingMade, OutcomeUnknown, Unreachable

if TYPE_CHECKING:
    from tests.fakes.world import World


class FakeBudgets:
    w: World

    def funding(self, offers: Sequence[Offer], most: Money, until: Instant) -> Funding | None:
        return Funding(self.w.kind, f"budget {len(self.w.budgets)}", most, until) if self.w.signs_only else None

    def fund(self, funding: Funding) -> Funded:
        if self.w.take("said no"):
            raise NothingMade("the wallet in the browser said no")
        if funding.key not in self.w.budgets:
            self.w.signatures += 1
            if any(b is not None for b in self.w.budgets.values()):
                raise NothingMade("a budget is open already")
            self.w.budgets[funding.key] = funding.most.units
        if self.w.take("fund answer lost"):
            raise OutcomeUnknown("signed, and not in a block yet")
        return Funded(Instant(self.w.now), None)

    def refund(self, funding: Funding) -> Refunded:
        if self.w.take("market down"):
            raise Unreachable("market down")
        assert all(r.closed_at for r in self.w.rentals), "a rental that nobody can end any more"
        left, self.w.budgets[funding.key] = self.w.budgets.get(funding.key), None
        return Refunded(Money(left, USDC) if left else None, Money(0, POL), Money(0, POL))

    def _draw(self, units: int) -> None:
        if self.w.signs_only:
            key = next((k for k, left in self.w.budgets.items() if left is not None), None)
            if key is None or (self.w.budgets[key] or 0) < units:
                raise NothingMade("above the budget")
            self.w.budgets[key] = (self.w.budgets[key] or 0) - units
