"""What a stranger signed, checked before it is believed: a quote before paying, a ready message before connecting.

Pure: what the chain says comes in as values.
"""
from __future__ import annotations

import re

from ..domain.escrow import ZERO_ADDRESS, EscrowFacts, Quote, Ready, Rental
from ..domain.lease import Access
from ..domain.names import Instant, Reason
from ..errors import LeaveNode, OfferGone, StopRun, Transient
from . import typed

MAX_FEE_BPS = 1500
_NO_HASH = "0x" + "00" * 32
_HOST = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9.:-]{0,251}[A-Za-z0-9])?")
_USER = re.compile(r"[a-z_][a-z0-9_-]{0,31}")
_HOST_KEY = re.compile(r"ssh-ed25519 [A-Za-z0-9+/]{68}")
_HOST_KEYS_MOST = 8


def quote(facts: EscrowFacts, account: str, given: Quote, signature: str, now: int) -> str:
    """The quote's digest, which the chain may know as spent. OfferGone: not for us, not now, not signed."""
    try:
        signable = typed.message(facts, given)
    except (ValueError, TypeError, AttributeError) as why:
        raise OfferGone(f"the quote is malformed: {why}") from why
    if given.renter.lower() != account.lower():
        raise OfferGone(f"the quote is for {given.renter}, not for {account}")
    if now > given.validUntil:
        raise OfferGone(f"the quote ran out {now - given.validUntil} s ago")
    if given.feeBps > MAX_FEE_BPS or (given.feeBps and given.feeRecipient == ZERO_ADDRESS):
        raise OfferGone(f"the quote's fee of {given.feeBps} basis points is not allowed")
    if (typed.signer(signable, signature) or "").lower() != given.provider.lower():
        raise OfferGone(f"the quote is not signed by {given.provider}")
    return typed.digest(signable)


def ready(facts: EscrowFacts, rental: Rental, given: Ready, signature: str, now: int) -> Access:
    """Where the node is and by which keys it is known.

    Transient: not on chain yet, or not valid yet. StopRun: it contradicts the chain, so somebody stands in between.
    LeaveNode: it is the provider's own, and names nothing that one could connect to."""
    if rental.ready_hash == _NO_HASH:
        raise Transient(f"the provider has not activated rental {rental.id} yet")
    try:
        signable = typed.message(facts, given)
    except (ValueError, TypeError, AttributeError) as why:
        raise _contradicts(f"the ready message is malformed: {why}") from why
    if typed.struct_hash(signable) != rental.ready_hash:
        raise _contradicts("the ready message is not the one that is on chain")
    if (typed.signer(signable, signature) or "").lower() != rental.provider.lower():
        raise _contradicts(f"the ready message is not signed by {rental.provider}")
    if given.rentalId.lower() != rental.id.lower() or given.accessHash.lower() != rental.access_hash.lower():
        raise _contradicts("the ready message is for another rental or another key")
    _check_endpoint(given)
    if now < given.notBefore:
        raise Transient(f"the node is ready in {given.notBefore - now} s", retry_at=Instant(given.notBefore))
    return Access(given.host, given.port, given.user, given.hostKeys, "signed")


def _check_endpoint(given: Ready) -> None:
    """Signed or not, it goes into file names, commands and logs."""
    if not _HOST.fullmatch(given.host) or not 0 < given.port < 65536 or not _USER.fullmatch(given.user):
        raise LeaveNode(Reason.UNSUITABLE, detail="the provider signed no usable endpoint")
    if not 0 < len(given.hostKeys) <= _HOST_KEYS_MOST or not all(_HOST_KEY.fullmatch(k) for k in given.hostKeys):
        raise LeaveNode(Reason.UNSUITABLE, detail="the provider signed no ed25519 host key")


def _contradicts(message: str) -> StopRun:
    return StopRun(Reason.HOST_KEY, message, hint="somebody may stand between you and the node; nothing was sent")
