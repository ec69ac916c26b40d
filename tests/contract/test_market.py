"""The port Market, one behaviour suite for every driver: each mutating verb twice with one intent has one effect.

The stands differ in what they can do (deposits, an inspection window, an own end), never in what a verb means.
"""
from __future__ import annotations

import json
import secrets
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.domain.document import decode, encode
from orchestrator.domain.lease import Access, Ended, Ending, Hold, Lease, LeaseView, Order, Terms, Wish
from orchestrator.domain.money import USDC, Money
from orchestrator.domain.names import Digest, Instant, LeaseKey, Reason
from orchestrator.errors import NoFunds, NothingMade, Transient
from orchestrator.marketplace.open_market.driver import OpenMarket
from orchestrator.marketplace.own_server.driver import OwnServer
from orchestrator.marketplace.registry import Markets
from orchestrator.ports import Clock, Market
from orchestrator.provider.serve import provider
from tests.fakes.clock import StoppedClock
from tests.fakes.labchain import Lab, lab
from tests.fakes.open_market import HOST_KEY, RICH, SSH_KEY, provider_config, street, until
from tests.fakes.outbox import MemoryOutbox
from tests.fakes.world import FakeClock, FakeMarket, World

pytestmark = pytest.mark.money
EVIDENCE, REPORT = Digest("sha256:" + "ab" * 32), Digest("sha256:" + "cd" * 32)


@dataclass
class Stand:
    """A market to try, and what is to be expected of it."""

    market: Market
    clock: Clock
    deposits: bool = False               # pays ahead, and gets back what was not used
    drift: int = 0                       # seconds that a real chain's clock may add to any time
    repeatable: bool = True              # `open` itself may be repeated; where not, `find` is asked
    always_there: bool = False           # cannot be not rented

    def order(self, seconds: int = 3600, pay_at_most: Money = RICH) -> Order:
        terms = Terms(LeaseKey(secrets.token_hex(32)), SSH_KEY, seconds, pay_at_most, 600)
        return self.market.prepare(self.market.offers(Wish())[0], terms)

    def begun(self, order: Order | None = None) -> tuple[Lease, LeaseView]:
        """Rented, and the node is there."""
        lease = self.market.open(order or self.order())
        if not self.always_there:
            self.clock.sleep(30)
        return lease, until(lambda: self.market.look(lease), lambda view: view.access is not None)

    def end(self, lease: Lease, reason: Reason = Reason.DONE) -> Ended:
        return self.market.end(Ending(lease, reason, EVIDENCE if reason is Reason.HARDWARE else None, REPORT))


@contextmanager
def in_memory(kind: str) -> Iterator[Stand]:
    world = World(kind)
    yield Stand(FakeMarket(world), FakeClock(world), deposits=kind == "escrow", repeatable=kind != "custodial")


@contextmanager
def own_server(folder: Path) -> Iterator[Stand]:
    clock = StoppedClock()
    access = Access("127.0.0.1", 2222, "me", (HOST_KEY,), "known_hosts", "agent")
    yield Stand(OwnServer(lambda: access, lambda at: "no GPU", clock), clock, always_there=True)


@contextmanager
def open_market(folder: Path) -> Iterator[Stand]:
    with street(folder) as made:
        yield Stand(made.market, made.clock, deposits=True)
        assert made.contract.total() == 100_000_000


@contextmanager
def one_of_several(folder: Path) -> Iterator[Stand]:
    with own_server(folder) as other, open_market(folder) as stand:
        stand.market = Markets({"open": stand.market, "ssh": other.market})
        yield stand


class MovedClock:
    """The wall's clock, moved ahead together with a lab's chain."""

    def __init__(self, lab: Lab) -> None:
        self._lab, self._ahead = lab, 0

    def now(self) -> Instant:
        return Instant(int(time.time()) + self._ahead)

    def sleep(self, seconds: int) -> None:
        self._ahead += seconds
        self._lab.later(seconds, block=True)


@contextmanager
def on_a_real_chain(lab: Lab, folder: Path) -> Iterator[Stand]:
    """Provider, driver, contract and token as they are shipped, on the lab's chain; the clocks are the chain's."""
    money = json.loads((lab.folder / "money.json").read_text())
    config = provider_config(folder, rpc=lab.url, chain_id=lab.facts.chain_id, escrow=lab.facts.escrow,
                             token=lab.facts.token, key_file=money["provider_key"])
    clock = MovedClock(lab)
    clock.sleep(int(lab.rpc("eth_getBlockByNumber", "pending", False)["timestamp"], 16) - clock.now())
    before = lab.usdc(lab.renter.address)
    with provider(config, lambda: None) as running:
        market = OpenMarket(running.url, lab.escrow(MemoryOutbox()), clock)
        yield Stand(market, clock, deposits=True, drift=60)
        for found in market.mine():
            market.end(Ending(found.lease, Reason.STOPPED, None, None))
    assert lab.usdc(lab.renter.address) <= before and lab.escrow_read("held") == 0


STANDS: dict[str, Callable[[Path], AbstractContextManager[Stand]]] = {
    "fake escrow": lambda folder: in_memory("escrow"),
    "fake custodial": lambda folder: in_memory("custodial"),
    "fake deadline": lambda folder: in_memory("lium"),
    "fake own server": lambda folder: in_memory("ssh"),
    "own server": own_server,
    "open market": open_market,
    "one of several": one_of_several,
}


@pytest.fixture(scope="module")
def chain_lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab("anvil", tmp_path_factory.mktemp("chain")) as found:
        yield found


@pytest.fixture(params=[*STANDS, "on a real chain"])
def stand(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Stand]:
    made = (on_a_real_chain(request.getfixturevalue("chain_lab"), tmp_path) if request.param not in STANDS
            else STANDS[request.param](tmp_path))
    with made as found:
        yield found


def test_offers_and_orders_change_nothing(stand: Stand) -> None:
    offer = stand.market.offers(Wish())[0]
    assert (offer.claim is None) is (not offer.stranger)
    order = stand.order()
    assert (order.market, order.rate, order.claim) == (offer.market, offer.rate, offer.claim)
    assert order.deposit == (order.rate.ahead(order.seconds) if stand.deposits else Money(0, USDC))
    assert stand.clock.now() <= order.start_by
    assert stand.market.mine() == type(stand.market.mine())()


def test_an_order_comes_out_of_the_journal_as_it_went_in(stand: Stand) -> None:
    order = stand.order()
    assert decode(Order, *encode(order)) == order
    lease, view = stand.begun(order)
    assert decode(Lease, *encode(lease)) == lease and decode(LeaseView, *encode(view)) == view


def test_more_than_may_be_spent_is_refused_in_time(stand: Stand) -> None:
    if stand.market.offers(Wish())[0].rate.per_hour.units:
        with pytest.raises(NoFunds):
            stand.order(pay_at_most=Money(1, USDC))


def test_opening_twice_is_one_lease(stand: Stand) -> None:
    order = stand.order()
    lease = stand.market.open(order)
    if stand.repeatable:
        assert stand.market.open(order) == lease
    stand.clock.sleep(60)
    assert stand.market.find(order) == stand.market.find(order) == lease
    assert len(stand.market.mine()) <= 1


def test_what_was_not_rented_is_not_found(stand: Stand) -> None:
    order = stand.order()
    if stand.always_there:
        assert stand.market.find(order) is not None
        return
    try:
        assert stand.market.find(order) is None
    except Transient as early:
        stand.clock.sleep((early.retry_at or order.placed_at + 120) - stand.clock.now())
        assert stand.market.find(order) is None


def test_a_ready_node_stays_the_same_node(stand: Stand) -> None:
    lease, view = stand.begun()
    again = stand.market.look(lease)
    assert view.access is not None and view.access == again.access and view.access.host_keys
    assert view.closed_by is None and stand.clock.now() - 2 <= again.as_of <= stand.clock.now()


def test_holding_twice_is_holding_once(stand: Stand) -> None:
    lease, view = stand.begun()
    target = Hold(lease, Instant((view.funded_until or stand.clock.now()) + 3600), RICH)
    first, second = stand.market.hold(target), stand.market.hold(target)
    assert first.funded_until == second.funded_until
    assert first.funded_until is None or first.funded_until >= target.until
    shorter = stand.market.hold(Hold(lease, Instant(target.until - 1800), RICH))
    assert shorter.funded_until == first.funded_until
    if first.funded_until and lease.rate.per_hour.units:
        with pytest.raises(NothingMade):
            stand.market.hold(Hold(lease, Instant(first.funded_until + 3600), lease.rate.ahead(7200)))
    stand.end(lease)
    if stand.deposits:
        paid_ahead = stand.market.settle(lease).deposit
        assert lease.rate.ahead(7200).units <= paid_ahead.units <= lease.rate.ahead(7200 + stand.drift).units


def test_ending_twice_is_one_end(stand: Stand) -> None:
    order = stand.order()
    lease, _ = stand.begun(order)
    stand.clock.sleep(600)
    first = stand.end(lease)
    stand.clock.sleep(60)
    assert stand.end(lease) == first and first.by == "renter" and not first.full_refund
    assert stand.market.look(lease).closed_by == "renter"
    assert stand.market.find(order) == lease
    assert len(stand.market.mine()) == 0


def test_ended_with_others_is_ended_as_alone(stand: Stand) -> None:
    lease, _ = stand.begun()
    stand.clock.sleep(600)
    for _ in range(2):
        stand.market.end_many([Ending(lease, Reason.STOPPED, None, REPORT)])
    ended = stand.end(lease, Reason.STOPPED)
    assert ended == stand.end(lease, Reason.STOPPED) and ended.by == "renter" and not ended.full_refund
    settled = stand.market.settle(lease)
    assert settled.deposit == settled.paid + settled.fee + settled.refunded + settled.credited
    assert stand.market.look(lease).closed_by == "renter" and len(stand.market.mine()) == 0
    stand.market.end_many([])


def test_settling_twice_is_one_settlement_and_adds_up(stand: Stand) -> None:
    lease, _ = stand.begun()
    stand.clock.sleep(600)
    stand.end(lease)
    stand.clock.sleep(60)
    settled = stand.market.settle(lease)
    assert stand.market.settle(lease) == settled and settled.final
    assert settled.deposit == settled.paid + settled.fee + settled.refunded + settled.credited
    if stand.deposits:
        assert settled.deposit == lease.rate.ahead(3600) and settled.refunded.units > 0
        used = (settled.paid + settled.fee).units        # the clock starts at `open` or at ready, as the market has it
        assert lease.rate.accrued(600).units <= used <= lease.rate.accrued(630 + stand.drift).units


def test_hardware_not_as_offered_is_free_where_there_is_a_window(stand: Stand) -> None:
    lease, view = stand.begun()
    ended = stand.end(lease, Reason.HARDWARE)
    assert ended.full_refund is (view.inspect_until is not None)
    settled = stand.market.settle(lease)
    if ended.full_refund:
        assert (settled.paid + settled.fee).units == 0 and settled.refunded == settled.deposit


def test_what_is_ours_is_listed_until_it_ends(stand: Stand) -> None:
    order = stand.order()
    lease, _ = stand.begun(order)
    for found in stand.market.mine():
        assert (found.lease.lease_id, found.lease.key, found.lease.rate) == (lease.lease_id, order.key, order.rate)
        assert found.view.closed_by is None
    stand.end(lease)
    assert len(stand.market.mine()) == 0
