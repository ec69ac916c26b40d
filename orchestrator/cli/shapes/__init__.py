"""What each command prints with `--json`: every object, key by key. This is the reference, and a test holds every command
to it: all keys are always there, and no other.

    amounts      strings in base units of the token (USDC has 6 decimals, POL 18); `usd` amounts likewise with 6
    sizes        bytes, unless a name says mib
    times        `at`, `since`, `until`, … Unix seconds; spans in seconds; [low, expected, high] where three stand together
    null         not known, or not there

A command that fails before it has a result prints Failed, and its exit code says which kind of failure it was.
"""
from __future__ import annotations

from typing import Any

from .before import Advised, DataCheck, Plan, Written
from .money import Closings, Deployed, Lab, LabState, Need, OpenRentals, Rental, Stopped, Swept, Verified, Wallet, WalletMade
from .runs import Audited, Ended, Failed, Record, Rentals, Run, Status

SHAPES: dict[str, Any] = {               # by the command's words; `logs` prints one object a line
    "advise": Advised, "init": Written, "plan": Plan, "data check": DataCheck,
    "run": Run, "demo": Run, "resume": Run, "status": Status, "logs": Record, "rentals": Rentals, "end": Ended,
    "audit": Audited,
    "wallet new": WalletMade, "wallet import": WalletMade, "wallet show": Wallet, "wallet fund": Need, "wallet sweep": Swept,
    "escrow show": Rental, "escrow open": OpenRentals, "escrow end": Closings, "escrow verify": Verified,
    "escrow deploy": Deployed,
    "lab up": Lab, "lab down": Stopped, "lab status": LabState,
}

__all__ = ["SHAPES", "Failed"]
