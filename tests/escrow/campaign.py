"""Payers that are killed again and again until their intents have happened, and the count of what was paid.

Each is a process of its own, forked from one that has imported everything, so that a real SIGKILL costs little.
"""
from __future__ import annotations

import multiprocessing
import sqlite3
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from orchestrator.chain.rpc import Rpc
from orchestrator.chain.wallet import Wallet
from orchestrator.lab.deploy import GAS_WEI, mint
from tests.fakes.labchain import NO_FEE, Lab, a_key, an_access_hash

from .gate import Gate, Kill, standing
from .payer import AGAIN, Deposit, Payer, Payment, carry_out, carry_out_naively, settle

PER_DEPOSIT, PER_PAYMENT = 66_667, 1_000
PATIENCE_S = 60


@dataclass(frozen=True)
class Figures:
    kills: int
    intents: int
    doubled: int
    lost: int


class Campaign:
    """One wallet with one state folder, and everything that is done with it."""

    def __init__(self, world: Lab, folder: Path) -> None:
        self.world, key = world, a_key()
        self.wallet = Wallet(bytes.fromhex(key))
        self.payer = Payer(world.url, folder / "state", key, world.facts)
        self.intents: list[Payment | Deposit] = []
        self.kills, self.paid_in, self._counting = 0, 1_000 * 10**6, threading.Lock()
        mint(world.url, world.folder, self.wallet.address, self.paid_in)
        world.rpc("anvil_setBalance", self.wallet.address, hex(1_000 * GAS_WEI))
        self._forks = multiprocessing.get_context("forkserver")
        self._forks.set_forkserver_preload(["pytest", "tests.escrow.payer"])

    # ---- intents ----

    def payment(self) -> Payment:
        made = Payment(f"pay:{len(self.intents)}", Wallet(bytes.fromhex(a_key())).address, PER_PAYMENT)
        self.intents.append(made)
        return made

    def deposit(self) -> Deposit:
        quote, signature = self.world.quote(renter=self.wallet.address, validUntil=2**40, startWindow=600, **NO_FEE)
        made = Deposit(a_key(), quote, signature, an_access_hash(), PER_DEPOSIT)
        self.intents.append(made)
        return made

    # ---- runs ----

    def naively(self, intent: Payment, kill: Kill) -> None:
        for one in (kill, None):
            with standing(Gate(self.world.url, one)) as gate:
                self._child(gate, carry_out_naively, intent)

    def see_through(self, intent: Payment | Deposit, kills: Sequence[Kill]) -> None:
        """Carried out under each of these kills, and then in peace until it says that it is done."""
        for kill in kills:
            self._run(intent, kill)
        deadline = time.monotonic() + PATIENCE_S
        while (code := self._run(intent, None)) != 0:
            assert code == AGAIN, f"exit code {code}"
            assert time.monotonic() < deadline, "never through"

    def questions(self, intent: Payment | Deposit) -> list[str]:
        """What a payer asks that nobody disturbs."""
        with standing(Gate(self.world.url, None)) as gate:
            assert self._child(gate, carry_out, intent) == 0
        return gate.asked

    def _run(self, intent: Payment | Deposit, kill: Kill | None) -> int:
        with standing(Gate(self.world.url, kill)) as gate:
            code = self._child(gate, carry_out, intent)
        self._must_know(gate.raw)
        with self._counting:
            self.kills += code == -9
        assert code in (0, AGAIN, -9), f"exit code {code}"
        return code

    def _child(self, gate: Gate, do: Any, *arguments: Any) -> int:
        child = self._forks.Process(target=do, args=(replace(self.payer, url=gate.url), *arguments))
        child.start()
        gate.let_in(child.pid)
        child.join(PATIENCE_S)
        code = child.exitcode
        if code is None:
            child.kill()
            child.join()
        child.close()
        assert code is not None, "a payer hangs"
        return code

    # ---- what became of it ----

    def _must_know(self, raw: Sequence[str]) -> None:
        """No byte reaches a node that is not on disk before."""
        kept = {"0x" + bytes(row[0]).hex() for row in self._rows("SELECT raw FROM attempts")}
        assert set(raw) <= kept

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        path = self.payer.state / "journal.sqlite"
        if not path.exists():
            return []
        db = sqlite3.connect(path)
        try:
            return db.execute(sql).fetchall()
        finally:
            db.close()

    def figures(self) -> Figures:
        """After all blocks are final and one more command has run: what was paid how often. The books must be closed."""
        for _ in range(2):               # a reorganisation may have undone something that the first one brings back
            self.world.rpc("anvil_mine", hex(4))
            with standing(Gate(self.world.url, None)) as gate:
                assert self._child(gate, settle) == 0
        self._must_be_closed()
        times = [self.times(intent) for intent in self.intents]
        spent = sum(one.amount * count for one, count in zip(self.intents, times, strict=True))
        assert self.world.usdc(self.wallet.address) == self.paid_in - spent
        return Figures(self.kills, len(times), sum(count > 1 for count in times), sum(count == 0 for count in times))

    def times(self, intent: Payment | Deposit) -> int:
        if isinstance(intent, Payment):
            return self.world.usdc(intent.to) // intent.amount
        escrow = self.world.escrow_read
        return int(escrow("statusOf", self.world.escrow(_NoOutbox(), who=self.wallet).rental_id(intent.key)) == 1)  # type: ignore[arg-type]

    def _must_be_closed(self) -> None:
        """Every nonce that was ever signed is used, each intent has one, and the outbox says that nothing is open."""
        keys = dict[str, set[int]]()
        for key, nonce in self._rows("SELECT key, nonce FROM attempts"):
            keys.setdefault(key, set()).add(nonce)
        assert all(len(nonces) == 1 for nonces in keys.values()), keys
        nonces = sorted(n for found in keys.values() for n in found)
        assert nonces == list(range(Rpc(self.world.url).nonce(self.wallet.address))), nonces
        closed = {key for key, in self._rows("SELECT key FROM outcomes WHERE outcome = 'mined'")}
        assert closed == set(keys), set(keys) - closed


class _NoOutbox:
    """For asking alone."""


def everywhere(questions: int) -> Iterator[Kill]:
    """At every question: before it gets through, after, and at four moments after its answer."""
    for at in range(1, questions + 1):
        yield Kill(at, "before")
        yield Kill(at, "after")
        yield Kill(at, "answered", (0.0, 0.002, 0.005, 0.012)[at % 4])
