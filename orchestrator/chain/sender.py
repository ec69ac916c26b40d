"""Transactions that happen once: sign, keep on disk, send the same bytes, ask by hash.

An intent has a key. Its attempts share one nonce, so at most one of them can ever be mined; they are kept before
they are sent, so a crash at any point leaves bytes that can be sent again and nothing else. A new nonce is taken only
when the old one is provably gone: used up by another transaction, deep enough, and none of ours was it. Whoever wants
to sign finishes first what this wallet left unfinished; a transaction behind a gap would wait for ever anyway.

Included is not final: an intent stays open in the outbox until no reorganisation can take its block back, and whoever
comes next looks whether it is still there. A receipt alone proves neither, since nodes keep receipts of blocks that are
no more: the account's count of transactions must have passed the nonce as well. Nobody waits for the end of that, except
before something that was included and reverted counts as not done. Waits for inclusion, bounded; repeats nothing on its
own. The lock of a wallet is held for a whole turn.
"""
from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

from ..errors import NoFunds, NothingMade, OutcomeUnknown, Refused, Transient
from ..second_row import Attempt, Outbox
from . import fees
from .envelope import bid_of, fields_of
from .fees import Fees, Policy
from .rpc import Receipt, Rpc
from .signer import Signer

WAIT_S = 20
_LOOK_EVERY_S = 0.2
_GAS_HINT = "send it some of the chain's own coin"
_AGAIN_HINT = "the same command again sends the same bytes"


@dataclass(frozen=True, slots=True)
class Signed:
    """One attempt: what the outbox keeps."""

    nonce: int
    raw: bytes
    hash: str


class Sender:
    """For one wallet on one chain. Everything but `turn` and `spent` is called inside a turn."""

    def __init__(self, rpc: Rpc, wallet: Signer, outbox: Outbox, chain_id: int, policy: Policy, wait_s: float = WAIT_S,
                 pause: Callable[[float], object] | None = None) -> None:
        self._rpc, self._wallet, self._outbox, self._policy = rpc, wallet, outbox, policy
        self._chain_id, self._wait_s, self._pause = chain_id, wait_s, pause or threading.Event().wait
        self._name = f"{chain_id}:{wallet.address}"
        self._next_nonce = 0             # a node that lags behind does not make us use one twice
        self._final, self._final_nonce = -1, 0       # the newest block known to be final, our count of transactions there,
        self._asked_final = float("-inf")            # and when that was asked

    @contextlib.contextmanager
    def turn(self, own: str) -> Iterator[None]:
        """Be the one who signs for this wallet, with nothing unfinished before. `own`: a part of the keys of the
        intent that this turn is for; what is unfinished there is OutcomeUnknown, anything else only Transient."""
        with self._outbox.lock(self._name):
            pending = _by_key(self._outbox.pending(self._name))
            seen = self._included(pending)
            for key, attempts in pending.items():
                self._finish_earlier(key, attempts, own, seen)
            yield

    def unfinished(self, own: str) -> bool:
        """Whether something that was signed for this intent may still happen, or be undone. Needs no turn."""
        return any(own in key for key, _ in self._outbox.pending(self._name))

    def signed(self, key: str) -> bool:
        """Whether there ever was a transaction for this intent, whatever became of it. Needs no turn."""
        return bool(self._outbox.attempts(self._name, key))

    def outcome(self, key: str) -> Receipt | None:
        """What was signed for this intent, seen through. None: none of it is in the chain, nor ever will be. OutcomeUnknown
        while neither can be said."""
        try:
            return self._finish(key, earlier) if (earlier := self._outbox.attempts(self._name, key)) else None
        except (Transient, Refused) as doubt:
            raise OutcomeUnknown(str(doubt), hint=doubt.hint) from doubt

    def send(self, key: str, to: str, data: bytes, value: int = 0) -> Receipt:
        """The receipt of this intent, which is signed now if it never was, or if all that was signed is dead.

        NothingMade: refused, before or after signing. NoFunds, Unreachable: before. OutcomeUnknown: after."""
        if (receipt := self.outcome(key)) is not None and receipt.ok:
            return receipt
        signed = self._kept(key, self._fields(to, data, value))
        receipt = self._see_through(key, [signed])
        return self._must_be_ok(receipt, to, data, value)

    def fresh_key(self, stem: str) -> str:
        """For what may rightly be done again later: the stem with the first number that was never used."""
        return next(key for key in _numbered(stem) if not self._outbox.attempts(self._name, key))

    def spent(self, keys: Iterable[str], stems: Iterable[str]) -> int:
        """Wei that all transactions of these intents cost, failed ones included. Needs no turn."""
        attempts = [a for key in keys for a in self._outbox.attempts(self._name, key)]
        for stem in stems:
            for key in _numbered(stem):
                if not (found := self._outbox.attempts(self._name, key)):
                    break
                attempts += found
        receipts = [r for a in attempts if (r := self._rpc.receipt(a.hash)) is not None]
        return sum(r.gas_used * r.gas_price for r in receipts)

    def mined_hash(self, keys: Iterable[str]) -> str | None:
        """The first of these intents' transactions that was mined and did something. Needs no turn."""
        for key in keys:
            for attempt in self._outbox.attempts(self._name, key):
                receipt = self._rpc.receipt(attempt.hash)
                if receipt is not None and receipt.ok:
                    return receipt.hash
        return None

    # ---- what was begun ----

    def _included(self, pending: Mapping[str, Sequence[Attempt]]) -> Mapping[str, Receipt]:
        """By hash, of all that is open, in one question. An answer that fails says nothing: each is asked for then."""
        with contextlib.suppress(Transient, Refused):
            return self._counted([a for attempts in pending.values() for a in attempts])
        return {}

    def _counted(self, attempts: Sequence[Attempt]) -> Mapping[str, Receipt]:
        """Receipts by hash, of those whose nonce the chain counts as used."""
        found = {r.hash: r for r in self._rpc.receipts([a.hash for a in attempts]) if r is not None} if attempts else {}
        used = self._rpc.nonce(self._wallet.address) if found else 0
        return {a.hash: found[a.hash] for a in attempts if a.hash in found and a.nonce < used}

    def _finish_earlier(self, key: str, attempts: Sequence[Attempt], own: str, seen: Mapping[str, Receipt]) -> None:
        """`seen`: receipts by hash. Where one of these attempts is among them, its nonce is used and nothing has to be
        sent. Of another intent it need not be final."""
        receipt = next((seen[a.hash] for a in attempts if a.hash in seen), None)
        try:
            if receipt is None:
                self._finish(key, attempts)
            elif own in key or self._is_final(receipt, attempts):
                self._conclude(key, receipt, attempts)
        except (OutcomeUnknown, Transient, Refused) as doubt:
            if own in key:
                raise OutcomeUnknown(str(doubt), hint=doubt.hint) from doubt
            raise Transient(f"an earlier transaction of this wallet ({key}) is not through yet: {doubt}",
                            hint=doubt.hint) from doubt

    def _finish(self, key: str, attempts: Sequence[Attempt]) -> Receipt | None:
        """Bring an intent to its end: the receipt, or None when none of its bytes can ever be mined.

        Attempts on an older nonce are dead, or there would be no newer one, unless a reorganisation revived one."""
        open_ones = [a for a in attempts if a.nonce == attempts[-1].nonce]
        receipt = self._receipt_of(attempts)
        if receipt is not None and (receipt.ok or receipt.hash in {a.hash for a in open_ones}):
            return self._conclude(key, receipt, attempts)
        if self._is_gone(open_ones[-1].nonce):
            if (late := self._receipt_of(open_ones)) is not None:
                return self._conclude(key, late, attempts)
            self._outbox.conclude(self._name, key, "dead")
            return None
        return self._see_through(key, [*open_ones[:-1], self._renewed(key, open_ones[-1])])

    def _see_through(self, key: str, attempts: Sequence[Attempt]) -> Receipt:
        """Send the newest and wait for any of them. From here on every doubt is OutcomeUnknown."""
        newest, problem = attempts[-1], ""
        try:
            if self._rpc.broadcast(newest.raw) == "fee":
                newest = self._outbid(key, newest, fees.today(self._rpc, self._policy)[0])
                attempts = [*attempts, newest]
                self._rpc.broadcast(newest.raw)
        except (NoFunds, OutcomeUnknown, Transient, Refused) as doubt:
            problem = str(doubt)
        receipt, silence = self._await(attempts)
        if receipt is None:
            why = f": {problem or silence}" if problem or silence else ""
            raise OutcomeUnknown(f"transaction {newest.hash} was signed but is not in a block yet{why}", hint=_AGAIN_HINT)
        return self._conclude(key, receipt, attempts)

    def _await(self, attempts: Sequence[Attempt]) -> tuple[Receipt | None, str]:
        """(the receipt of one of them, or what kept us from seeing it). A node that does not answer says nothing."""
        deadline, silence = time.monotonic() + self._wait_s, ""
        while True:
            try:
                receipt, silence = self._receipt_of(attempts), ""
            except (Transient, Refused) as problem:
                receipt, silence = None, str(problem)
            if receipt is not None or time.monotonic() >= deadline:
                return receipt, silence
            self._pause(_LOOK_EVERY_S)

    def _receipt_of(self, attempts: Sequence[Attempt]) -> Receipt | None:
        found = [(r, a.nonce) for a in reversed(attempts) if (r := self._rpc.receipt(a.hash)) is not None]
        used = self._rpc.nonce(self._wallet.address) if found else 0
        counted = [r for r, nonce in found if nonce < used]
        return next((r for r in counted if r.ok), counted[0] if counted else None)

    def _is_gone(self, nonce: int) -> bool:
        """Whether the nonce was used up so long ago that no reorganisation brings it back. Transient: not yet."""
        if self._rpc.nonce(self._wallet.address) <= nonce:
            return False
        if self._policy.depth == 0 or self._rpc.nonce(self._wallet.address, self._rpc.final(self._policy.depth)) > nonce:
            return True
        raise OutcomeUnknown(f"nonce {nonce} was used by another transaction, which is not final yet", hint=_AGAIN_HINT)

    def _conclude(self, key: str, receipt: Receipt, attempts: Sequence[Attempt]) -> Receipt:
        """The receipt again, its intent closed where it is final. What was included and reverted is no answer before."""
        if self._is_final(receipt, attempts):
            self._outbox.conclude(self._name, key, "mined" if receipt.ok else "dead")
        elif not receipt.ok:
            raise OutcomeUnknown(f"transaction {receipt.hash} was included and reverted, which is not final yet",
                                 hint=_AGAIN_HINT)
        return receipt

    def _is_final(self, receipt: Receipt, attempts: Sequence[Attempt]) -> bool:
        """Asked once a second at most. What a node does not say counts as no: whoever comes next asks again."""
        nonce = next(a.nonce for a in attempts if a.hash == receipt.hash)
        if self._policy.depth and nonce >= self._final_nonce and time.monotonic() >= self._asked_final + 1:
            self._asked_final = time.monotonic()
            with contextlib.suppress(Transient, Refused):
                self._final = self._rpc.final(self._policy.depth)
                self._final_nonce = self._rpc.nonce(self._wallet.address, self._final)
        return self._policy.depth == 0 or (receipt.block <= self._final and nonce < self._final_nonce)

    def _must_be_ok(self, receipt: Receipt, to: str, data: bytes, value: int) -> Receipt:
        if receipt.ok:
            return receipt
        self._rpc.gas_for(self._wallet.address, to, data, value)    # usually says why, now as then
        raise NothingMade(f"transaction {receipt.hash} was mined and reverted")

    # ---- signing ----

    def _fields(self, to: str, data: bytes, value: int) -> dict[str, Any]:
        """A transaction for the next nonce. The contract is asked first, so what it refuses costs nothing."""
        me = self._wallet.address
        gas = with_margin(self._rpc.gas_for(me, to, data, value))
        bid, _ = fees.today(self._rpc, self._policy)
        if (owned := self._rpc.balance(me)) < gas * bid.most + value:
            raise NoFunds(f"{me} has {_coin(owned)}, this transaction may cost {_coin(gas * bid.most + value)}",
                          hint=_GAS_HINT)
        return self._transaction(self._free_nonce(), to, data, value, gas, bid)

    def _free_nonce(self) -> int:
        """After all that the chain knows of, and all of ours that it may not know of: nodes lag, and nodes differ."""
        ours = (attempt.nonce + 1 for _, attempt in self._outbox.pending(self._name))
        return max(self._rpc.nonce(self._wallet.address, "pending"), self._next_nonce, *ours)

    def _transaction(self, nonce: int, to: str, data: bytes, value: int, gas: int, bid: Fees) -> dict[str, Any]:
        from eth_utils.address import to_checksum_address

        return {"chainId": self._chain_id, "nonce": nonce, "to": to_checksum_address(to), "value": value, "data": data,
                "gas": gas, "maxFeePerGas": bid.most, "maxPriorityFeePerGas": bid.tip}

    def _kept(self, key: str, fields: Mapping[str, Any]) -> Signed:
        """Signed and written down, and only then is its nonce taken: whatever comes between leaves no gap."""
        raw, hash = self._wallet.sign_transaction(fields)
        signed = Signed(fields["nonce"], raw, hash)
        self._outbox.keep(self._name, key, signed)
        self._next_nonce = max(self._next_nonce, fields["nonce"] + 1)
        return signed

    def _renewed(self, key: str, attempt: Attempt) -> Attempt:
        """The attempt itself, or a replacement if its bid has become hopeless."""
        try:
            bid, base = fees.today(self._rpc, self._policy)
        except Transient:
            return attempt               # nobody there: the old bytes are all there is
        hopeless = fees.hopeless(bid_of(attempt.raw), bid, base, self._policy)
        return self._outbid(key, attempt, bid) if hopeless else attempt

    def _outbid(self, key: str, attempt: Attempt, bid: Fees) -> Attempt:
        """The same call on the same nonce for more, kept before it is sent. Above what the wallet has: as it was."""
        higher, fields = fees.outbid(bid_of(attempt.raw), bid), fields_of(attempt.raw)
        if self._rpc.balance(self._wallet.address) < fields["gas"] * higher.most + fields["value"]:
            return attempt               # nobody would take it; the bytes that can be paid for stay the ones that are sent
        return self._kept(key, {**fields, "maxFeePerGas": higher.most, "maxPriorityFeePerGas": higher.tip})


def with_margin(gas: int) -> int:
    """A limit above what was measured: the next block may need a little more."""
    return gas * 5 // 4 + 5_000


def _by_key(pending: Sequence[tuple[str, Attempt]]) -> dict[str, list[Attempt]]:
    """Open attempts by intent, the one with the lowest nonce first."""
    found: dict[str, list[Attempt]] = {}
    for key, attempt in pending:
        found.setdefault(key, []).append(attempt)
    return found


def _numbered(stem: str) -> Iterator[str]:
    return (f"{stem}:{number}" for number in count())


def _coin(wei: int) -> str:
    return f"{wei / 10**18:.6f} POL"
