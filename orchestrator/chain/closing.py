"""Ending rentals, one or fifty: which call closes one as it stands, and what came of each of many.

Nothing is rejected here; that is for the one rental whose hardware was seen. What was not closed is said and may be tried
again; the contract closes nothing twice.
"""
from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ..domain.escrow import EscrowFacts, Rental
from ..errors import SealtuneError, Transient
from . import contracts, typed
from .bulk import BulkSender, Call, Outcome
from .rpc import Receipt, Rpc

HARDWARE = 1                             # the contract's reason code of a rejection
VERBS = ("cancel", "reject", "end")


class Reader(Protocol):
    """The part of the escrow's client that is needed."""

    def facts(self) -> EscrowFacts: ...
    def rentals(self, ids: Sequence[str]) -> Sequence[Rental]: ...


@dataclass(frozen=True, slots=True)
class Closing:
    """One rental after we tried to close it. `problem`: why it is open, or may be. `receipt`: of our transaction."""

    rental: Rental
    problem: SealtuneError | None
    receipt: Receipt | None = None


def closing_call(rental: Rental, reject: bool, evidence: str, report: str) -> tuple[Any, ...]:
    """(function, its arguments after the id) that closes an open rental as its state demands."""
    if rental.status in ("funded", "no-show"):
        return ("cancel",)
    if reject:
        return "reject", HARDWARE, word(evidence)
    return "end", word(report)


def close_all(rpc: Rpc, escrow: Reader, sender: BulkSender, rentals: Sequence[Rental],
              reports: Mapping[str, str]) -> Sequence[Closing]:
    """Cancel or end each, as its state demands. `reports`: digests to anchor, by id. Safe to repeat."""
    wanted = [(one, closing_call(one, False, "", reports.get(one.id, ""))) for one in rentals if one.status != "closed"]
    return _close(rpc, escrow, sender, rentals, {one.id: (verb, rest) for one, (verb, *rest) in wanted})


def close_signed(rpc: Rpc, escrow: Reader, sender: BulkSender, rentals: Sequence[Rental],
                 signatures: Sequence[str]) -> Sequence[Closing]:
    """End each by its renter's signature under a typed.End without a report; the sender only pays the gas."""
    return _close(rpc, escrow, sender, rentals, {
        one.id: ("endSigned", ["0x" + "00" * 32, bytes.fromhex(signature[2:])])
        for one, signature in zip(rentals, signatures, strict=True)})


def _close(rpc: Rpc, escrow: Reader, sender: BulkSender, rentals: Sequence[Rental],
           wanted: Mapping[str, tuple[str, Sequence[Any]]]) -> Sequence[Closing]:
    address = escrow.facts().escrow
    encode: Callable[..., bytes] = rpc.contract(address, contracts.load("RentalEscrow").abi).encode
    calls = {id: Call(f"{verb}:{id}", address, encode(verb, id, *rest)) for id, (verb, rest) in wanted.items()}
    with sender.turn("close-all"):
        outcomes = sender.send_all(list(calls.values()))
    return [_closing(now, outcomes.get(calls[now.id].key) if now.id in calls else None)
            for now in escrow.rentals([one.id for one in rentals])]


def _closing(now: Rental, outcome: Outcome | None) -> Closing:
    receipt = outcome if isinstance(outcome, Receipt) else None
    if now.status == "closed":
        return Closing(now, None, receipt)
    if isinstance(outcome, SealtuneError):
        return Closing(now, outcome)
    return Closing(now, Transient("the chain does not show it closed yet", hint="the same command again"), receipt)


def word(text: str) -> str:
    return "0x" + typed.bytes32(text).hex()
