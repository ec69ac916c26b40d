"""The error tree. Each error names the value, gives a hint, and knows what it means for the run.

SealtuneError                       exit 1
├── Refused                         before money: no offer, budget too small, not confirmed       exit 1
│   ├── BadInput                    what the person wrote: run file, dataset, argument            exit 2
│   └── NoOffer                     no machine to be had on this market now
├── NothingMade                     the world surely did not change
│   ├── OfferGone                   also a changed price or a rejected quote: the next offer, please
│   └── NoFunds                     no other offer helps
├── Transient                       may be repeated
│   └── Unreachable                 market, chain, hub or node did not answer
├── DoesNotOpen                     a sealed file at home that is not what it should be; for good
├── OutcomeUnknown                  it may have happened: ask, never repeat blindly
│   └── CannotTell                  asked for as long as we may, and the world did not say
├── LeaveNode                       this lease is over, the run may go on elsewhere               exit 4 for HARDWARE
│   └── NodeLost                    a node's verb had its full time and got no answer
├── StopRun                         going on makes no sense: the job failed, the budget is spent  exit 4 for HARDWARE
│   └── HostKeyChanged              another key under the pinned address: not one byte is sent
├── StillOwed                       released as far as possible; something may still bill         exit 5, node side only 3
└── RunLocked 11 · NoSuchRun 10 · Detached 0 · Interrupted 130

Exit codes: 0 done · 1 failed, nothing owed · 2 usage · 3 done but evidence incomplete · 4 hardware not as offered ·
5 failed and something may still be billing · 6 evidence contradicted · 10 no such run · 11 run in use · 130 interrupted
"""
from __future__ import annotations

from collections.abc import Iterable

from .domain.event import BILLING, Owed
from .domain.names import Digest, Instant, Reason

EXIT_INCOMPLETE, EXIT_CONTRADICTED, EXIT_BILLING = 3, 6, 5
GRAVITY = (5, 6, 3, 4, 1, 2, 10, 11, 130, 0)             # of several exit codes, the first in this order counts


def gravest(codes: Iterable[int]) -> int:
    """The exit code that stands for all of them; 0 for none."""
    return min(codes, key=GRAVITY.index, default=0)


class SealtuneError(Exception):
    """`str()` is one line in lower case that names the value; `hint` is the next command, or None. `untouched`: no word
    of any verb ever reached the node, so nothing was made there."""

    exit_code = 1
    untouched = False

    def __init__(self, message: str, hint: str | None = None) -> None:
        super().__init__(message)
        self.hint = hint


class Refused(SealtuneError):
    """Nothing was rented, nothing is owed."""


class BadInput(Refused):
    exit_code = 2


class NoOffer(Refused):
    """The market has no machine to offer now."""


class NothingMade(SealtuneError):
    """A verb that surely had no effect."""


class OfferGone(NothingMade):
    """This offer cannot be had any more; another one may."""

    offer_id = ""                        # where it is known


class NoFunds(NothingMade):
    """The wallet, or what was confirmed, does not reach."""


class Transient(SealtuneError):
    """Nothing happened yet; ask again, not before `retry_at` if that is known."""

    def __init__(self, message: str, hint: str | None = None, retry_at: Instant | None = None) -> None:
        super().__init__(message, hint)
        self.retry_at = retry_at


class Unreachable(Transient):
    """Nobody answered."""


class DoesNotOpen(SealtuneError):
    """A sealed file is damaged, gone, or another key's, and nobody will bring other bytes. The laptop is at no fault."""


class OutcomeUnknown(SealtuneError):
    """It may have happened. Neither success nor failure."""


class CannotTell(OutcomeUnknown):
    """The question stays open, so the deed must not be repeated."""


class LeaveNode(SealtuneError):
    """This node is of no use to the run any more; the reason goes into the journal."""

    def __init__(self, reason: Reason, evidence: Digest | None = None, detail: str = "") -> None:
        super().__init__(f"{reason.value}: {detail}" if detail else reason.value, hint="sealtune status")
        self.reason, self.evidence = reason, evidence
        self.exit_code = 4 if reason is Reason.HARDWARE else 1


class NodeLost(LeaveNode):
    """A node's verb had its full time and the node did not answer."""

    def __init__(self, detail: str = "") -> None:
        super().__init__(Reason.NODE_LOST, detail=detail)


class StopRun(SealtuneError):
    """The run is over; what was acquired is released."""

    def __init__(self, reason: Reason, message: str, hint: str | None = None) -> None:
        super().__init__(message, hint)
        self.reason = reason
        self.exit_code = 4 if reason is Reason.HARDWARE else 1


class HostKeyChanged(StopRun):
    """Somebody else answers under the address of the node. Raised before any byte of ours is sent."""

    def __init__(self, expected: str, got: str) -> None:
        super().__init__(Reason.HOST_KEY, f"host key changed: pinned {expected}, got {got}",
                         hint="somebody may stand between you and the node; the lease is ended, nothing was sent")


class StillOwed(SealtuneError):
    """Exit 5 while something may bill; exit 3 when only the node's side is left."""

    def __init__(self, owed: tuple[Owed, ...], cause: str) -> None:
        names = ", ".join(f"{o.what} of {o.scope}{'' if o.certain else ' (perhaps)'}" for o in owed)
        super().__init__(f"{cause}; still open: {names}", hint="sealtune end --leaked")
        self.owed, self.cause = owed, cause
        self.exit_code = 5 if any(o.what in BILLING for o in owed) else EXIT_INCOMPLETE


class NoSuchRun(SealtuneError):
    exit_code = 10


class RunLocked(SealtuneError):
    exit_code = 11


class Detached(SealtuneError):
    """The person left on purpose; the node goes on."""

    exit_code = 0


class Interrupted(SealtuneError):
    """The person stopped the run; everything acquired was released."""

    exit_code = 130
