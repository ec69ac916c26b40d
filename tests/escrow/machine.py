"""Everybody does everything at any second, to the contract and to the model, and nothing may differ.

Each rule makes one call on both. Either both go through or both refuse with the same name; after every step all that
can be read is compared.
"""
from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from hypothesis import strategies as st
from hypothesis.stateful import (
    Bundle,
    RuleBasedStateMachine,
    consumes,
    initialize,
    invariant,
    precondition,
    rule,
)

from . import model as m
from .chain import Reverted
from .inputs import digests, jitter, lists, parties, people, prices, providers, renters, roomy, someone, spans, which
from .world import (
    FEE_TAKER,
    OTHER_PROVIDER,
    OTHER_RENTER,
    PEOPLE,
    PROVIDER,
    PURSE,
    RENTER,
    SESSION,
    STRANGER,
    ZERO,
    Person,
    Quote,
    Terms,
    World,
    list_hash,
)


def there_is(state: int) -> Callable[[Any], Any]:
    """A rule for when a rental is in this state."""
    return precondition(lambda self: any(r.state == state for r in self.model.rentals.values()))


class EscrowMachine(RuleBasedStateMachine):
    quotes: Bundle[Quote] = Bundle("quotes")
    orders: Bundle[Terms] = Bundle("orders")

    @initialize(prices=st.tuples(prices, prices, prices), fee=st.sampled_from([0, 250, 1500]))
    def start(self, prices: tuple[int, ...], fee: int) -> None:
        """Three rentals to begin with: two running, one that waits for its provider."""
        self.world = World()
        self.escrow = self.world.escrow
        purses = Counter({RENTER.address: PURSE, OTHER_RENTER.address: PURSE})
        self.model = m.Model(self.escrow.address, self.world.chain.now, purses)
        self.keys = 1000
        renters, waits = (RENTER, RENTER, OTHER_RENTER), (False, False, True)
        for renter, price, wait in zip(renters, prices, waits, strict=True):
            self.rent(renter, PROVIDER, price, fee, 900, 3600, wait)

    # ---- what people do -----------------------------------------------------------------------------------

    @rule(target=quotes, renter=renters, provider=providers, price=prices, least=st.sampled_from([0, 1, 60]),
          longest=st.one_of(st.just(36_000), spans),
          window=st.sampled_from([0, 60, 600]), inspection=st.sampled_from([0, 300, 900, 10_000]),
          fee=st.sampled_from([0, 0, 1, 250, 1500, 1501]), taker=st.sampled_from([FEE_TAKER.address] * 4 + [ZERO]),
          valid=st.sampled_from([0, 600, 600, 600, 600, 600, -1]))
    def quote(self, renter: Person, provider: Person, price: int, least: int, longest: int, window: int,
              inspection: int, fee: int, taker: str, valid: int) -> Quote:
        return self.world.quote(
            renter=renter.address, provider=provider.address, pricePerHour=price, minSeconds=least, maxSeconds=longest,
            startWindow=window, inspectionSeconds=inspection, feeBps=fee, feeRecipient=taker,
            validUntil=self.world.chain.now + valid)

    @rule(quote=quotes, key=st.integers(0, 3), seconds=st.one_of(spans, st.none()), slack=roomy,
          access=digests, outsider=st.sampled_from([None] * 8 + [STRANGER]),
          forger=st.sampled_from([None] * 8 + [STRANGER]))
    def create(self, quote: Quote, key: int, seconds: int | None, slack: int, access: bytes,
               outsider: Person | None, forger: Person | None) -> None:
        name, digest = key.to_bytes(32, "big"), self.world.digest(quote)
        caller = outsider.address if outsider else quote.renter
        signer = forger or next(p for p in PEOPLE if p.address == quote.provider)
        seconds = quote.maxSeconds if seconds is None else min(seconds, quote.maxSeconds + 1, 2**32 - 1)
        at_most = max(0, m.price_ahead(quote.pricePerHour, seconds) + slack)
        id = self.world.id_of(quote.renter, name)
        self.both(
            lambda: self.escrow.send(caller, "create", name, quote.tuple(), signer.sign(digest), seconds, at_most,
                                     access),
            lambda: self.model.create(id, name, quote, forger is None, seconds, at_most, access, caller))

    @rule(renter=renters, provider=providers, price=prices, fee=st.sampled_from([0, 0, 1, 250, 1500]),
          inspection=st.sampled_from([0, 900, 900, 5000]), seconds=st.integers(60, 7200),
          waits=st.sampled_from([False, False, True]))
    def rents(self, **terms: Any) -> None:
        """The usual beginning in one step, so that long stories happen."""
        self.rent(**terms)

    def rent(self, renter: Person, provider: Person, price: int, fee: int, inspection: int, seconds: int,
             waits: bool) -> None:
        quote = self.world.quote(renter=renter.address, provider=provider.address, pricePerHour=price, feeBps=fee,
                                 feeRecipient=FEE_TAKER.address, inspectionSeconds=inspection)
        self.keys += 1
        self.create(quote, self.keys, seconds, 0, b"\x01" * 32, None, None)
        id = self.world.id_of(renter.address, self.keys.to_bytes(32, "big"))
        if id in self.model.rentals and not waits:
            self.activate(id, quote.provider, b"\x02" * 32)

    # ---- budgets ------------------------------------------------------------------------------------------

    @rule(target=orders, owner=renters, session=st.sampled_from([SESSION, SESSION, STRANGER, PROVIDER]),
          cap=st.sampled_from([0, 1, 400_000, 3_000_000, 2**95]), price=st.sampled_from([0, 400_000, 2**96 - 1]),
          wait=st.sampled_from([-1, 0, 1, 3600, 86_400]), providers=lists)
    def order(self, owner: Person, session: Person, cap: int, price: int, wait: int,
              providers: tuple[str, ...]) -> Terms:
        return self.world.terms(
            owner=owner.address, session=session.address, cap=cap, maxPricePerHour=price, expiry=self.model.now + wait,
            providersHash=list_hash(providers) if providers else bytes(32))

    @rule(order=orders, forger=st.sampled_from([None] * 8 + [STRANGER]), sender=people)
    def open_budget(self, order: Terms, forger: Person | None, sender: Person) -> None:
        signer = forger or next(p for p in PEOPLE if p.address == order.owner)
        self.both(lambda: self.world.open_budget(order, signer=signer, sender=sender),
                  lambda: self.model.open_budget(order, self.world.budget_digest(order), forger is None))

    @rule(owner=renters, caller=st.sampled_from([None, None, SESSION, *PEOPLE]))
    def close_budget(self, owner: Person, caller: Person | None) -> None:
        by = (caller or owner).address
        self.both(lambda: self.escrow.send(by, "closeBudget", owner.address),
                  lambda: self.model.close_budget(owner.address, by))

    @rule(owner=renters, provider=providers, price=st.sampled_from([400_000, 123_457, 0, 1, 400_001]),
          seconds=st.integers(60, 7200), fresh=st.sampled_from([True, True, True, False]), listed=lists, slack=roomy,
          caller=someone, forger=st.sampled_from([None] * 8 + [STRANGER]), waits=st.booleans())
    def session_rents(self, owner: Person, provider: Person, price: int, seconds: int, fresh: bool,
                      listed: tuple[str, ...], slack: int, caller: Person | None, forger: Person | None,
                      waits: bool) -> None:
        quote = self.world.quote(renter=owner.address, provider=provider.address, pricePerHour=price)
        self.keys += fresh
        name, signature = self.keys.to_bytes(32, "big"), (forger or provider).sign(self.world.digest(quote))
        by = caller.address if caller else self.model.budgets.get(owner.address, m.Budget()).session
        at_most = max(0, m.price_ahead(price, seconds) + slack)
        id = self.world.id_of(owner.address, name)
        self.both(
            lambda: self.escrow.send(by, "createFromBudget", name, quote.tuple(), signature, seconds, at_most,
                                     b"\x01" * 32, listed),
            lambda: self.model.create_from_budget(id, name, quote, forger is None, seconds, at_most, b"\x01" * 32,
                                                  listed, by))
        if id in self.model.rentals and not waits:
            self.activate(id, quote.provider, b"\x02" * 32)

    @rule(wait=st.sampled_from([3600, 86_400]), cap=st.sampled_from([400_000, 3_000_000]), owner=renters,
          provider=providers, seconds=st.integers(60, 7200))
    def budget_and_rental(self, wait: int, cap: int, owner: Person, provider: Person, seconds: int) -> None:
        """The usual beginning in one step."""
        order = self.world.terms(owner=owner.address, cap=cap, expiry=self.model.now + wait)
        self.open_budget(order, None, STRANGER)
        self.session_rents(owner, provider, 400_000, seconds, True, (), 0, None, None, False)

    # ---- running and closing ------------------------------------------------------------------------------

    @there_is(m.FUNDED)
    @rule(which=which, caller=someone, ready=digests)
    def activate_one(self, which: int, caller: Person | None, ready: bytes) -> None:
        id = self.some(which, m.FUNDED)
        self.activate(id, caller.address if caller else self.model.rentals[id].provider, ready)

    def activate(self, id: bytes, caller: str, ready: bytes) -> None:
        self.both(lambda: self.escrow.send(caller, "activate", id, ready),
                  lambda: self.model.activate(id, ready, caller))

    @rule(quote=consumes(quotes), caller=someone)
    def cancel_quote(self, quote: Quote, caller: Person | None) -> None:
        by = caller.address if caller else quote.provider
        self.both(lambda: self.escrow.send(by, "cancelQuote", quote.tuple()),
                  lambda: self.model.cancel_quote(quote, by))

    @there_is(m.ACTIVE)
    @rule(which=which, more=st.one_of(st.sampled_from([0, 1, 2, 3599, 3601]), st.integers(1, 40_000), st.none()),
          slack=roomy, caller=someone)
    def extend(self, which: int, more: int | None, slack: int, caller: Person | None) -> None:
        id = self.some(which, m.ACTIVE)
        r = self.model.rentals[id]
        total = r.maxSeconds if more is None else min(r.fundedSeconds + more, 2**32 - 1)
        by = caller.address if caller else self.model.session(r) or r.renter
        at_most = max(0, m.price_ahead(r.pricePerHour, total) - r.deposit + slack)
        self.both(lambda: self.escrow.send(by, "extendTo", id, total, at_most),
                  lambda: self.model.extend_to(id, total, at_most, by))

    @there_is(m.FUNDED)
    @rule(which=which, party=parties, caller=someone)
    def cancel(self, which: int, party: str, caller: Person | None) -> None:
        id = self.some(which, m.FUNDED)
        by = caller.address if caller else self.party(id, party)
        self.both(lambda: self.escrow.send(by, "cancel", id), lambda: self.model.cancel(id, by))

    @there_is(m.ACTIVE)
    @rule(which=which, reason=st.integers(0, 255), evidence=digests, caller=someone)
    def reject(self, which: int, reason: int, evidence: bytes, caller: Person | None) -> None:
        id = self.some(which, m.ACTIVE)
        by = caller.address if caller else self.model.rentals[id].renter
        self.both(lambda: self.escrow.send(by, "reject", id, reason, evidence),
                  lambda: self.model.reject(id, reason, evidence, by))

    @there_is(m.ACTIVE)
    @rule(which=which, report=digests, party=parties, caller=someone)
    def end(self, which: int, report: bytes, party: str, caller: Person | None) -> None:
        id = self.some(which, m.ACTIVE)
        by = caller.address if caller else self.party(id, party)
        self.both(lambda: self.escrow.send(by, "end", id, report), lambda: self.model.end(id, report, by))

    @there_is(m.ACTIVE)
    @rule(which=which, report=digests, signer=st.sampled_from([RENTER, RENTER, OTHER_RENTER, SESSION, *PEOPLE]),
          sender=people)
    def end_signed(self, which: int, report: bytes, signer: Person, sender: Person) -> None:
        id = self.some(which, m.ACTIVE)
        signature = signer.sign(self.world.end_digest(id, report))
        self.both(lambda: self.escrow.send(sender.address, "endSigned", id, report, signature),
                  lambda: self.model.end_signed(id, report, signer.address))

    @there_is(m.ACTIVE)
    @rule(which=which, caller=people, waits=st.sampled_from([True, True, False]))
    def settle(self, which: int, caller: Person, waits: bool) -> None:
        id = self.some(which, m.ACTIVE)
        if waits:
            self.warp(max(self.model.now, self.model.rentals[id].endsAt))
        self.both(lambda: self.escrow.send(caller.address, "settle", id),
                  lambda: self.model.settle(id, caller.address))

    @rule(owner=st.sampled_from([PROVIDER, PROVIDER, FEE_TAKER, *PEOPLE]), sender=someone)
    def withdraw(self, owner: Person, sender: Person | None) -> None:
        call = ("withdrawFor", owner.address) if sender else ("withdraw",)
        self.both(lambda: self.escrow.send((sender or owner).address, *call),
                  lambda: self.model.withdraw(owner.address))

    # ---- what happens -------------------------------------------------------------------------------------

    @rule(seconds=st.one_of(st.sampled_from([0, 1, 60, 600, 3600]), st.integers(1, 5000)))
    def time_passes(self, seconds: int) -> None:
        self.warp(self.model.now + seconds)

    @rule(which=which, moment=st.sampled_from(["startBy", "endsAt", "inspection"]), off=jitter)
    def time_comes_to_an_edge(self, which: int, moment: str, off: int) -> None:
        id = self.some(which)
        r = self.model.rentals[id]
        edges = {"startBy": r.startBy, "endsAt": r.endsAt, "inspection": r.startedAt + r.inspectionSeconds}
        self.warp(max(self.model.now, edges[moment] + off))

    @rule(owner=renters, off=jitter)
    def time_comes_to_a_budgets_end(self, owner: Person, off: int) -> None:
        self.warp(max(self.model.now, self.model.budgets.get(owner.address, m.Budget()).expiry + off))

    @rule(amount=st.sampled_from([1, 10**6]))
    def donate(self, amount: int) -> None:
        """Tokens sent to the contract by mistake belong to nobody and disturb nothing."""
        self.both(lambda: self.world.token.send(RENTER.address, "transfer", self.escrow.address, amount),
                  lambda: self.model.donate(RENTER.address, amount))

    @rule(who=st.sampled_from([RENTER, PROVIDER, FEE_TAKER, "escrow", "paused"]))
    def token_makes_trouble(self, who: Person | str) -> None:
        if who == "paused":
            self.set_pause(not self.model.paused)
        else:
            address = who.address if isinstance(who, Person) else self.escrow.address
            self.set_blacklisted(address, address not in self.model.blacklist)

    @rule()
    def token_is_well_again(self) -> None:
        self.thaw_everyone()

    # ---- what must hold -----------------------------------------------------------------------------------

    @invariant()
    def every_unit_is_accounted_for(self) -> None:
        held, credits = self.escrow.read("held"), self.escrow.read("credits")
        assert (held, credits) == (self.model.held(), sum(self.model.credit.values()))
        assert self.world.balance(self.escrow.address) == held + credits + self.model.donated
        for p in PEOPLE:
            assert self.world.balance(p.address) == self.model.balances[p.address], p.name
            assert self.escrow.read("creditOf", p.address) == self.model.credit[p.address], p.name
        assert sum(self.model.balances.values()) == 2 * PURSE

    @invariant()
    def every_rental_is_the_models(self) -> None:
        ids = list(self.model.rentals)
        for id, found in zip(ids, self.escrow.read("rentals", ids), strict=True):
            wanted = self.model.rentals[id]
            assert vars(found) == asdict(wanted)
            assert found.deposit == m.price_ahead(found.pricePerHour, found.fundedSeconds)
            if found.state == m.CLOSED:
                assert found.paid + found.fee + found.refunded == found.deposit
            assert self.escrow.read("statusOf", id) == wanted.status(self.model.now)
            assert self.escrow.read("accruedOf", id) == wanted.accrued(self.model.now)

    @invariant()
    def every_budget_is_the_models(self) -> None:
        for p in (RENTER, OTHER_RENTER):
            assert vars(self.escrow.read("budgetOf", p.address)) == asdict(self.model.budgets.get(p.address, m.Budget()))

    @invariant()
    def open_lists_are_what_is_open(self) -> None:
        for p in (RENTER, OTHER_RENTER, PROVIDER, OTHER_PROVIDER):
            for as_provider in (False, True):
                listed = self.listed(p.address, as_provider)
                assert len(listed) == len(set(listed))
                assert set(listed) == self.model.open_of(p.address, as_provider)

    def teardown(self) -> None:
        """From wherever this run came to, strangers and time close everything, and every unit comes home."""
        if not hasattr(self, "world"):
            return
        self.freeze_everyone()
        self.warp(self.model.now + 2**33)
        for id, r in self.model.rentals.items():
            if r.state != m.CLOSED:
                self.escrow.send(STRANGER.address, "cancel" if r.state == m.FUNDED else "settle", id)
                close = self.model.cancel if r.state == m.FUNDED else self.model.settle
                close(id, STRANGER.address)
        for owner in [owner for owner, b in self.model.budgets.items() if b.expiry]:
            self.close_budget(next(p for p in PEOPLE if p.address == owner), STRANGER)
        assert self.escrow.read("held") == 0
        self.open_lists_are_what_is_open()
        self.thaw_everyone()
        for p in PEOPLE:
            if self.model.credit[p.address]:
                self.withdraw(p, STRANGER)
        self.every_unit_is_accounted_for()
        self.every_rental_is_the_models()
        assert self.world.balance(self.escrow.address) == self.model.donated

    # ---- tools --------------------------------------------------------------------------------------------

    def both(self, contract: Callable[[], Any], model: Callable[[], None]) -> None:
        try:
            model()
            wanted = None
        except m.Refused as refused:
            wanted = str(refused)
        try:
            contract()
            found = None
        except Reverted as reverted:
            found = reverted.name
        assert found == wanted

    def some(self, which: int, state: int | None = None) -> bytes:
        """Mostly one in this state, or that is open at least, since of closed ones there is little to say."""
        opened = [id for id, r in self.model.rentals.items() if r.state != m.CLOSED]
        fitting = [id for id in opened if self.model.rentals[id].state == state]
        pool = (fitting or opened if which % 6 else []) or list(self.model.rentals)
        return pool[which % len(pool)]

    def party(self, id: bytes, name: str) -> str:
        r = self.model.rentals[id]
        return {"renter": r.renter, "provider": r.provider, "session": self.model.session(r) or r.renter}[name]

    def listed(self, account: str, as_provider: bool) -> list[bytes]:
        found: list[bytes] = []
        cursor = 0
        while True:
            ids, cursor = self.escrow.read("openRentals", account, as_provider, cursor, 2)
            assert ids or cursor == 0
            found += ids
            if cursor == 0:
                return found

    def warp(self, time: int) -> None:
        self.model.now = time
        self.world.chain.warp(time)

    def set_pause(self, yes: bool) -> None:
        self.world.pause(yes)
        self.model.paused = yes

    def set_blacklisted(self, address: str, yes: bool) -> None:
        self.world.blacklist(address, yes)
        (self.model.blacklist.add if yes else self.model.blacklist.discard)(address)

    def freeze_everyone(self) -> None:
        for address in {p.address for p in PEOPLE} - self.model.blacklist:
            self.set_blacklisted(address, True)
        if not self.model.paused:
            self.set_pause(True)

    def thaw_everyone(self) -> None:
        for address in list(self.model.blacklist):
            self.set_blacklisted(address, False)
        if self.model.paused:
            self.set_pause(False)
