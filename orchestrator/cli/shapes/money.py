"""Objects of `wallet`, `escrow` and `lab`. See the package for units."""
from __future__ import annotations

from typing import TypedDict

from .runs import Check


class WalletMade(TypedDict):
    address: str
    keystore: str                        # path
    keyring: bool                        # the password is kept there


class Wallet(TypedDict):
    address: str
    payer: str                           # who pays the gas: the account itself, or the second key of a browser's wallet
    network: str
    chain_id: int
    usdc: str
    pol: str                             # the payer's, for gas
    usdc_e: str                          # of the bridged token, which the escrow does not take
    locked: str | None                   # in open rentals; this and the next two null where the escrow was not reached
    credit: str | None
    set_aside: str                       # in a budget, for a run
    open_rentals: int | None
    paused: bool | None                  # by the token's issuer
    blacklisted: bool | None
    why: str | None                      # of what is null


class Sums(TypedDict):
    usdc: str
    pol: str


class Need(Wallet):
    """The wallet, what a run needs, and what to send."""

    token: str | None
    need: Sums
    send: Sums


class Swept(TypedDict):
    to: str
    usdc: str
    pol: str
    credit: str
    left_pol: str                        # not worth its gas
    transactions: list[str]
    finished_earlier: bool               # a sweep that was begun before was seen through first
    final: bool


class Rental(TypedDict):
    """As the contract has it."""

    id: str
    status: str
    renter: str
    provider: str
    per_hour: str
    deposit: str
    locked: str
    accrued: str
    can_still_cost: str                  # if nobody ends it
    seconds: int                         # paid ahead
    started_at: int
    ends_at: int
    inspect_until: int
    outcome: str | None
    closed_by: str | None
    paid: str
    fee: str
    refunded: str
    report_digest: str


class OpenRentals(TypedDict):
    rentals: list[Rental]
    locked: str
    can_still_cost: str


class Closing(Rental):
    error: str | None


class Closings(TypedDict):
    ended: list[Closing]


class Verified(TypedDict):
    escrow: str
    token: str
    chain_id: int
    checks: list[Check]


class Deployed(TypedDict):
    escrow: str
    token: str
    chain_id: int
    transaction: str | None              # null or "": it was there already


class LabMoney(TypedDict):
    chain_id: int
    escrow: str
    token: str
    renter_key: str                      # paths of the lab's throwaway keys
    provider_key: str


class Lab(TypedDict):
    folder: str
    chain_url: str
    chain_kind: str                      # anvil, or the small one
    provider_url: str
    hub_url: str
    node_host: str
    node_port: int
    node_user: str
    node_kind: str                       # sshd, or the small one
    node_home: str
    money: LabMoney
    release: str                         # of the tool that started it


class Stopped(TypedDict):
    stopped: bool                        # false: none was running


class LabState(TypedDict):
    running: bool
    lab: Lab | None
