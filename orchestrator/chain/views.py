"""A rental as the contract's storage shows it, in the words of domain/escrow.py.

Pure: storage and a time in, Rental out.

What depends on time (no-show, expired, accrued) is computed here with the contract's own rules, so that it is right
on a chain whose last block is old; tests compare it with the contract's views.
"""
from __future__ import annotations

from typing import Any

from ..domain.escrow import Rental

_FUNDED, _ACTIVE, _CLOSED = 1, 2, 3
_PARTIES = ("", "renter", "provider", "anyone")
_OUTCOMES = ("", "cancelled", "no-show", "rejected", "abandoned", "ended", "expired")


def rental(id: str, raw: Any, now: int) -> Rental:
    """`raw`: the contract's struct as a named tuple."""
    started = raw.startedAt if raw.state != _FUNDED else 0
    return Rental(
        id=id, key=_hex(raw.key), renter=raw.renter, provider=raw.provider, status=_status(raw, now),
        price_per_hour=raw.pricePerHour, fee_bps=raw.feeBps, deposit=raw.deposit, accrued=_accrued(raw, now),
        seconds=raw.fundedSeconds, max_seconds=raw.maxSeconds, created_at=raw.createdAt, start_by=raw.startBy,
        started_at=started, ends_at=raw.endsAt, inspect_until=started + raw.inspectionSeconds if started else 0,
        access_hash=_hex(raw.accessHash), ready_hash=_hex(raw.readyHash), closed_at=raw.closedAt,
        closed_by=_PARTIES[raw.closedBy], outcome=_OUTCOMES[raw.outcome], paid=raw.paid, fee=raw.fee, refunded=raw.refunded,
        report_digest=_hex(raw.reportDigest), budget=raw.budget)


def _status(raw: Any, now: int) -> str:
    if raw.state == _FUNDED:
        return "no-show" if now > raw.startBy else "funded"
    if raw.state == _ACTIVE:
        return "active" if now < raw.endsAt else "expired"
    return "closed" if raw.state == _CLOSED else "none"


def _accrued(raw: Any, now: int) -> int:
    if raw.state != _ACTIVE:
        return int(raw.paid + raw.fee)
    return int(raw.pricePerHour * max(0, min(now, raw.endsAt) - raw.startedAt) // 3600)


def _hex(value: bytes) -> str:
    return "0x" + value.hex()
