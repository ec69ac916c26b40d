"""Money in integer base units. No float, no conversion, no mixing of currencies."""
from __future__ import annotations

import re
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Currency:
    code: str
    decimals: int


USDC = Currency("USDC", 6)
POL = Currency("POL", 18)


@dataclass(frozen=True, slots=True)
class Money:
    """`units` of the currency's smallest part; negative only as a difference."""

    units: int
    currency: Currency

    def __add__(self, other: Money) -> Money:
        return Money(self.units + self._same(other).units, self.currency)

    def __sub__(self, other: Money) -> Money:
        return Money(self.units - self._same(other).units, self.currency)

    def covers(self, other: Money) -> bool:
        return self.units >= self._same(other).units

    def _same(self, other: Money) -> Money:
        if other.currency != self.currency:
            raise ValueError(f"cannot mix {self.currency.code} and {other.currency.code}")
        return other

    def __str__(self) -> str:
        """Exact, at least two decimals: "0.45 USDC", "0.007501 USDC"."""
        sign, units = ("-" if self.units < 0 else ""), abs(self.units)
        whole, part = divmod(units, 10 ** self.currency.decimals)
        digits = str(part).rjust(self.currency.decimals, "0").rstrip("0").ljust(min(2, self.currency.decimals), "0")
        return f"{sign}{whole}{'.' if digits else ''}{digits} {self.currency.code}"

    @classmethod
    def parse(cls, text: str, currency: Currency) -> Money:
        """"8.00 USDC" in base units. ValueError for another currency, too many decimals, or no number."""
        found = re.fullmatch(r"\s*(\d{1,18})(?:\.(\d+))?\s*([A-Za-z]+)\s*", text, re.ASCII)
        if not found:
            raise ValueError(f"not an amount of money: {text!r}")
        whole, part, code = found[1], found[2] or "", found[3]
        if code.upper() != currency.code:
            raise ValueError(f"{code} where {currency.code} is needed")
        if len(part) > currency.decimals:
            raise ValueError(f"{currency.code} has {currency.decimals} decimals, {text!r} has more")
        return cls(int(whole) * 10 ** currency.decimals + int(part.ljust(currency.decimals, "0") or "0"), currency)


@dataclass(frozen=True, slots=True)
class Rate:
    """Price of one hour. What is paid ahead rounds up, what is owed rounds down, as in the escrow contract."""

    per_hour: Money

    def ahead(self, seconds: int) -> Money:
        return Money(-(-self.per_hour.units * seconds // 3600), self.per_hour.currency)

    def accrued(self, seconds: int) -> Money:
        return Money(self.per_hour.units * max(0, seconds) // 3600, self.per_hour.currency)

    def affordable(self, money: Money) -> int:
        """The most whole seconds that `ahead` charges at most this much for; a free rate buys 10 years."""
        if self.per_hour.units == 0:
            return 315_360_000
        return max(0, money.units) * 3600 // self.per_hour.units

    def __str__(self) -> str:
        return f"{self.per_hour} per hour"


@dataclass(frozen=True, slots=True)
class Settlement:
    """How one lease was paid. deposit = paid + fee + refunded + credited, exactly; `paid` is without the fee.

    A custodial market takes no deposit: there `deposit` is what it charged and `refunded` is zero.
    The own server: all zero. `final` is False while the market may still change the figure.
    """

    deposit: Money
    paid: Money
    fee: Money
    refunded: Money
    credited: Money                      # a refund that could not be pushed and waits to be withdrawn
    gas: Money | None                    # spent by us on this lease, in the chain's own coin
    final: bool
