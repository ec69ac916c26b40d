"""The second row of ports: what one room needs of another. The story never sees them; the wiring hands them over.

The rules of ports.py hold here too.
"""
from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from .domain.escrow import Budget, EscrowFacts, Quote, Ready, Rental
from .domain.lease import Access
from .domain.money import Money
from .domain.names import Digest, LeaseKey


@dataclass(frozen=True, slots=True)
class Closed:
    """A rental that is closed, and our transaction that did it, with its gas; None: it was closed before, or by others."""

    rental: Rental
    transaction: str | None
    gas: Money


class Escrow(Protocol):
    """Between the open market's driver and chain/. Amounts in token base
    units, ids and digests as 0x-hex, times in chain seconds.

    Every sending verb goes through the Outbox: the same key gives the same bytes again, so all of them may
    be repeated. They return when included. NothingMade: the contract refused, with its reason in words;
    NoFunds: token, allowance or gas do not reach; Unreachable: before anything was signed; OutcomeUnknown: after."""

    @property
    def account(self) -> str:
        """The renter's address."""
        ...

    def facts(self) -> EscrowFacts:
        """Chain id, contract, token; checked once against the chain and the committed bytecode. Refused otherwise."""
        ...

    def now(self) -> int:
        """Timestamp of the newest block."""
        ...

    def gas_of_a_life(self) -> Money:
        """Estimate in POL for approve, create, one extension and end at today's fees."""
        ...

    def check_quote(self, quote: Quote, signature: str) -> None:
        """Signed by `quote.provider`, for us, not expired, not consumed. OfferGone otherwise."""
        ...

    def check_ready(self, rental: Rental, ready: Ready, signature: str) -> Access:
        """Signed by the rental's provider, hash on chain, same rental and access hash. Transient while the hash is
        not on chain yet; StopRun(HOST_KEY) when it contradicts."""
        ...

    def sign_request(self, method: str, path: str, body: bytes, rental_id: str) -> Mapping[str, str]:
        """HTTP headers that prove to a provider that the renter asks (EIP-712 ApiRequest)."""
        ...

    def rental_id(self, key: LeaseKey) -> str: ...
    def create(self, key: LeaseKey, quote: Quote, signature: str, seconds: int, deposit: int, access_hash: str,
               providers: Sequence[str] = ()) -> Rental:
        """Approve exactly the deposit if the allowance does not reach, then create. A rental with this key: that one. Where
        a budget pays, it is drawn from that; `providers`: its list."""
        ...

    def budget(self, cap: int, price: int, seconds: int, providers: Sequence[str]) -> Budget | None:
        """Terms for `open_budget`, for so long from now on; None where the wallet pays each deposit itself."""
        ...

    def open_budget(self, budget: Budget) -> str | None:
        """Hash of the transaction; None: it was open already. Asks the owner for one signature, unless one that was sent
        did it. NothingMade: the owner said no or signed something else, another budget is open, the account has code."""
        ...

    def close_budget(self, budget: Budget) -> tuple[int | None, Money]:
        """(what was left in it, None where it was not open any more; the second key's coin that went to the owner)."""
        ...

    def budget_spent(self, budget: Budget) -> Money:
        """Gas that opening and closing it cost us, in POL."""
        ...

    def view(self, rental_id: str) -> Rental:
        """status "none" where there is no such rental."""
        ...

    def extend_to(self, rental_id: str, seconds: int, total_at_most: int) -> Rental: ...
    def close(self, rental_id: str, hardware: bool, evidence: str, report: str) -> Rental:
        """Cancel, reject, end or settle, as the rental's state demands. Closed already: as it is."""
        ...

    def close_many(self, rental_ids: Sequence[str], reports: Mapping[str, str]) -> Sequence[Closed]:
        """`close` without a rejection, for many in few questions; `reports` by id. Those that are closed now; what is
        missing in the answer is still open, or may be: `close` says why."""
        ...

    def closing_transaction(self, rental: Rental) -> str | None:
        """Hash of the transaction that closed it, if it can be found; a hint."""
        ...

    def credit(self) -> int:
        """What the contract holds for us beyond open rentals."""
        ...

    def withdraw(self) -> None:
        """Bring the credit home, if there is one."""
        ...

    def spent(self, rental_id: str) -> Money:
        """Gas that our transactions for this rental cost, in POL."""
        ...

    def open_rentals(self) -> Sequence[Rental]: ...


class Outbox(Protocol):
    """Signed transactions before they are sent, per wallet and not per run, since the nonce is the wallet's.
    Durable on return. Lives in journal/ (the one room that writes durable state), used by chain/ only."""

    def lock(self, wallet: str) -> AbstractContextManager[None]:
        """One writer per (chain, address), across processes. `wallet` is "<chain id>:<address>"."""
        ...

    def attempts(self, wallet: str, key: str) -> Sequence[Attempt]:
        """All signed attempts of an intent, oldest first; [] if it was never signed."""
        ...

    def keep(self, wallet: str, key: str, attempt: Attempt) -> None: ...
    def pending(self, wallet: str) -> Sequence[tuple[str, Attempt]]:
        """Attempts whose outcome was not recorded, oldest nonce first."""
        ...

    def conclude(self, wallet: str, key: str, outcome: str) -> None:
        """`mined` or `dead`: a concluded intent may be signed again only when dead."""
        ...


class Attempt(Protocol):
    """One signed transaction of an intent."""

    @property
    def nonce(self) -> int: ...
    @property
    def raw(self) -> bytes: ...
    @property
    def hash(self) -> str: ...


class Evidence(Protocol):
    """Big documents by digest, beside the journal. Written by the node room, read by audit."""

    def keep(self, document: bytes) -> Digest: ...
    def read(self, digest: Digest) -> bytes: ...
