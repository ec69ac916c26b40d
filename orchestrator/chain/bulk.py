"""Many transactions of one wallet at a time: for whoever has lost everything but the key and finds fifty rentals open.

The same promises as sender.py, whose memory and lock it uses: each intent has one key, what is signed is kept before
it is sent, and what was not seen through is finished by the next turn. Only the questions are put together, so that a
node's limit on requests is not in the way of ending a bill.
"""
from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from ..errors import NoFunds, NothingMade, OutcomeUnknown, Refused, SealtuneError, Transient
from . import fees
from .rpc import Receipt
from .sender import Sender, Signed, with_margin

AT_ONCE = 16                             # nodes keep so many waiting transactions of one account
_LOOK_EVERY_S = 1.0
Outcome: TypeAlias = Receipt | SealtuneError


@dataclass(frozen=True, slots=True)
class Call:
    """`key`: of an intent that is done once, ever."""

    key: str
    to: str
    data: bytes


class BulkSender(Sender):
    """A sender that can also take many calls in one turn."""

    def send_all(self, calls: Sequence[Call]) -> Mapping[str, Outcome]:
        """What came of each, by key. Inside a turn. An error of one call does not stop the others; one of the node does,
        and what was not begun by then is not in the answer."""
        outcomes: dict[str, Outcome] = {}
        for first in range(0, len(calls), AT_ONCE):
            outcomes |= self._send_some(calls[first:first + AT_ONCE])
        return outcomes

    def _send_some(self, calls: Sequence[Call]) -> Mapping[str, Outcome]:
        begun = [c for c in calls if self._outbox.attempts(self._name, c.key)]
        outcomes: dict[str, Outcome] = {c.key: self._one(c) for c in begun}
        signed: dict[str, Signed] = {}
        for call, gas in self._measured([c for c in calls if c not in begun]):
            if isinstance(gas, SealtuneError):
                outcomes[call.key] = gas
            else:
                signed[call.key] = gas
        for one in signed.values():
            self._hand_over(one)
        return outcomes | self._awaited(signed)

    def _one(self, call: Call) -> Outcome:
        """One that was tried before: the long way, which knows what may have become of it."""
        try:
            return self.send(call.key, call.to, call.data)
        except SealtuneError as problem:
            return problem

    def _measured(self, calls: Sequence[Call]) -> Sequence[tuple[Call, Signed | SealtuneError]]:
        """Each call signed and kept, on nonces one after another, as far as the money for gas reaches."""
        if not calls:
            return []
        me = self._wallet.address
        answers = self._rpc.gas_for_each(me, [(call.to, call.data) for call in calls])
        bid, _ = fees.today(self._rpc, self._policy)
        left, nonce = self._rpc.balance(me), self._free_nonce()
        found: list[tuple[Call, Signed | SealtuneError]] = []
        for call, answer in zip(calls, answers, strict=True):
            if isinstance(answer, SealtuneError):
                found.append((call, answer))
                continue
            gas = with_margin(answer)
            if left < gas * bid.most:
                found.append((call, NoFunds(f"{me} cannot pay the gas of this one any more",
                                            hint="send it some of the chain's own coin, then again")))
                continue
            signed = self._kept(call.key, self._transaction(nonce, call.to, call.data, 0, gas, bid))
            found.append((call, signed))
            left, nonce = left - gas * bid.most, nonce + 1
        return found

    def _hand_over(self, signed: Signed) -> None:
        try:
            self._rpc.broadcast(signed.raw)
        except (NoFunds, OutcomeUnknown, Transient, Refused):
            return                       # whether it arrived is asked below; if not, the next turn sends it again

    def _awaited(self, signed: Mapping[str, Signed]) -> dict[str, Outcome]:
        deadline, waiting, outcomes = time.monotonic() + self._wait_s, dict(signed), dict[str, Outcome]()
        while waiting:
            seen = self._seen(list(waiting.values()))
            for key, one in list(waiting.items()):
                if one.hash in seen:
                    outcomes[key] = self._outcome(key, seen[one.hash], [one])
                    del waiting[key]
            if waiting and time.monotonic() >= deadline:
                break
            if waiting:
                self._pause(_LOOK_EVERY_S)
        return outcomes | {key: OutcomeUnknown(f"transaction {one.hash} was signed but is not in a block yet",
                                               hint="the same command again sends the same bytes")
                           for key, one in waiting.items()}

    def _outcome(self, key: str, receipt: Receipt, attempts: Sequence[Signed]) -> Outcome:
        try:
            self._conclude(key, receipt, attempts)
        except OutcomeUnknown as doubt:
            return doubt
        return receipt if receipt.ok else NothingMade(f"transaction {receipt.hash} reverted")

    def _seen(self, signed: Sequence[Signed]) -> Mapping[str, Receipt]:
        try:
            return self._counted(signed)
        except (Transient, Refused):     # a node that does not answer says nothing either way
            return {}
