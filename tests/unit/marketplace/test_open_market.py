"""The open market's driver against a provider that really listens; the escrow is in memory, its signatures are real."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.document import decode, encode
from orchestrator.domain.lease import Ending, Hold, Lease, Order, Wish
from orchestrator.domain.money import USDC, Money
from orchestrator.domain.names import Digest, Instant, LeaseId, Reason
from orchestrator.errors import NoFunds, OfferGone, OutcomeUnknown, Refused, StopRun, Transient, Unreachable
from orchestrator.marketplace.open_market.wire import QuoteFields
from tests.fakes.open_market import HOST_KEY, RICH, SSH_KEY, Street, street, until

pytestmark = pytest.mark.money
EVIDENCE, REPORT = Digest("sha256:" + "ab" * 32), Digest("sha256:" + "cd" * 32)


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Street]:
    with street(tmp_path) as made:
        yield made
        assert made.contract.total() == 100_000_000


def test_an_offer_says_what_is_rented_and_what_it_costs(lab: Street) -> None:
    [offer] = lab.market.offers(Wish())
    assert (offer.market, offer.offer_id, str(offer.rate)) == ("open", "lab-1", "0.45 USDC per hour")
    assert offer.claim is not None and (offer.claim.gpu, offer.claim.vram_mib) == ("Simulated RTX 4090", 24_564)
    assert (offer.fee_bps, offer.reliability, offer.simulated, offer.stranger) == (250, 990, True, True)
    assert offer.provider == lab.chain.account and offer.gas is not None


def test_an_order_survives_the_journal_and_changes_nothing(lab: Street) -> None:
    order = lab.order()
    assert lab.contract.transactions == 0
    assert (order.deposit, order.seconds, order.keep) == (Money(450_000, USDC), 3600, ("environment", "base model"))
    public, private = encode(order)
    assert SSH_KEY not in str(public) and decode(Order, public, private) == order


def test_a_whole_lease_to_the_last_unit(lab: Street) -> None:
    lease, view = lab.begun()
    assert view.access is not None
    assert (view.access.host, view.access.port, view.access.host_keys, view.access.trust) == (
        "127.0.0.1", 2222, (HOST_KEY,), "signed")
    assert view.funded_until == lab.clock.now() + 3600 and view.longest == lab.clock.now() + 36_000
    assert lab.admitted() == SSH_KEY

    lab.clock.sleep(1000)
    until_then = Instant(lab.clock.now() + 5000)
    held = lab.market.hold(Hold(lease, until_then, RICH))
    assert held.funded_until == until_then and held.access == view.access
    lab.clock.sleep(800)
    assert lab.market.look(lease).cost_so_far == lease.rate.accrued(1800)

    ended = lab.market.end(Ending(lease, Reason.DONE, None, REPORT))
    assert (ended.by, ended.full_refund, ended.node_gone) == ("renter", False, True) and ended.receipt
    assert lab.admitted() is None and lab.locked_out          # the provider was told, and has answered
    assert lab.contract.rentals[lease.lease_id].report_digest == "0x" + "cd" * 32
    paid = lab.market.settle(lease)
    assert [m.units for m in (paid.deposit, paid.paid, paid.fee, paid.refunded, paid.credited)] == [
        750_000, 219_375, 5_625, 525_000, 0]
    assert lab.contract.balances[lab.escrow.account.lower()] == 100_000_000 - 225_000


def test_open_again_is_the_same_lease_and_one_deposit(lab: Street) -> None:
    order = lab.order()
    first, second = lab.market.open(order), lab.market.open(order)
    assert first == second == lab.market.find(order)
    assert lab.contract.held() == 450_000


def test_a_lost_answer_is_found_again_in_another_process(lab: Street) -> None:
    order = lab.order()
    lab.escrow.faults["create lost"] = 1
    with pytest.raises(OutcomeUnknown):
        lab.market.open(order)
    other = lab.again()
    lease = other.find(order)
    assert lease is not None
    until(lambda: other.look(lease), lambda view: view.access is not None)


def test_look_tells_the_provider_what_open_could_not(lab: Street) -> None:
    """The process died after the deposit and before the hint, and the provider hears of it from another one."""
    order = lab.order()
    lab.escrow.create(order.key, QuoteFields.model_validate(order.facts["quote"]).quote(), order.facts["signature"],
                      order.seconds, order.deposit.units, order.facts["access_hash"])
    lease = Lease("open", order.key, LeaseId(lab.escrow.rental_id(order.key)), order.rate, order.placed_at, SSH_KEY)
    other = lab.again()
    view = until(lambda: other.look(lease), lambda seen: seen.access is not None)
    assert view.access is not None and lab.admitted() == SSH_KEY


def test_no_is_only_said_when_nothing_is_on_its_way(lab: Street) -> None:
    order = lab.order()
    lab.escrow.faults["on its way"] = 1
    with pytest.raises(Transient, match="may still be on its way"):
        lab.market.find(order)
    assert lab.market.find(order) is None
    lab.clock.sleep(121)
    with pytest.raises(OfferGone):
        lab.market.open(order)


def test_hold_never_shortens_and_never_passes_the_sum(lab: Street) -> None:
    lease, view = lab.begun()
    assert view.funded_until is not None and view.longest is not None
    assert lab.market.hold(Hold(lease, Instant(view.funded_until - 100), RICH)).funded_until == view.funded_until
    with pytest.raises(NoFunds):
        lab.market.hold(Hold(lease, Instant(view.funded_until + 3600), Money(899_999, USDC)))
    with pytest.raises(OfferGone):
        lab.market.hold(Hold(lease, Instant(view.longest + 1), Money(99_000_000, USDC)))
    target = Hold(lease, Instant(view.funded_until + 3600), Money(900_000, USDC))
    assert lab.market.hold(target).funded_until == lab.market.hold(target).funded_until == target.until
    assert lab.contract.held() == 900_000


def test_hardware_not_as_offered_costs_nothing_inside_the_window(lab: Street) -> None:
    lease, view = lab.begun()
    assert view.inspect_until == lab.clock.now() + 900
    lab.clock.sleep(900)
    ended = lab.market.end(Ending(lease, Reason.HARDWARE, EVIDENCE, REPORT))
    assert ended.full_refund and lab.contract.rentals[lease.lease_id].outcome == "rejected"
    assert lab.contract.rentals[lease.lease_id].report_digest == "0x" + "ab" * 32
    assert lab.market.settle(lease).refunded == Money(450_000, USDC)


def test_hardware_after_the_window_is_an_ordinary_end(lab: Street) -> None:
    lease, _ = lab.begun()
    lab.clock.sleep(901)
    assert not lab.market.end(Ending(lease, Reason.HARDWARE, EVIDENCE, REPORT)).full_refund
    assert lab.contract.rentals[lease.lease_id].outcome == "ended"


def test_a_lease_that_never_began_is_cancelled(lab: Street) -> None:
    order = lab.order()
    lab.chain.faults["down"] = 10_000
    lease = lab.market.open(order)
    assert lab.market.look(lease).access is None
    ended = lab.market.end(Ending(lease, Reason.NO_SHOW, None, None))
    assert ended.full_refund and lab.market.settle(lease).refunded == order.deposit


def test_end_again_is_the_same_answer(lab: Street) -> None:
    lease, _ = lab.begun()
    ending = Ending(lease, Reason.DONE, None, REPORT)
    first = lab.market.end(ending)
    lab.clock.sleep(100)
    assert lab.again().end(ending) == first
    assert lab.again().settle(lease) == lab.market.settle(lease)


def test_time_that_runs_out_is_expiry_and_is_settled_by_the_provider(lab: Street) -> None:
    lease, _ = lab.begun()
    lab.clock.sleep(3600)
    until(lambda: lab.contract.view(lease.lease_id).status, lambda status: status == "closed")
    assert lab.market.look(lease).closed_by == "expiry"
    assert lab.market.end(Ending(lease, Reason.LEASE_ENDED, None, REPORT)).by == "expiry"
    settled = lab.market.settle(lease)
    assert settled.paid + settled.fee == Money(450_000, USDC) and settled.refunded == Money(0, USDC)


def test_a_refund_that_could_not_be_pushed_is_withdrawn_or_named(lab: Street) -> None:
    lease, _ = lab.begun()
    lab.contract.blocked.add(lab.escrow.account.lower())
    lab.market.end(Ending(lease, Reason.HARDWARE, EVIDENCE, None))
    settled = lab.market.settle(lease)
    assert (settled.refunded.units, settled.credited.units) == (0, 450_000)
    lab.contract.blocked.clear()
    settled = lab.market.settle(lease)
    assert (settled.refunded.units, settled.credited.units) == (450_000, 0)
    assert lab.contract.balances[lab.escrow.account.lower()] == 100_000_000


def test_mine_needs_nothing_but_the_wallet(lab: Street) -> None:
    lease, _ = lab.begun()
    lab.provider.stop()
    [found] = lab.again().mine()
    assert (found.lease.lease_id, found.lease.key) == (lease.lease_id, lease.key)
    assert found.view.funded_until is not None and found.view.closed_by is None
    assert lab.again().end(Ending(found.lease, Reason.STOPPED, None, None)).by == "renter"
    assert lab.again().mine() == []


def test_settle_before_the_end_waits(lab: Street) -> None:
    lease, _ = lab.begun()
    with pytest.raises(Transient):
        lab.market.settle(lease)


def test_a_silent_provider_is_no_access_and_no_error(lab: Street) -> None:
    lease, _ = lab.begun()
    lab.provider.stop()
    view = lab.again().look(lease)
    assert view.access is None and view.funded_until is not None
    assert lab.market.look(lease).access is not None          # known and proven, so it is not asked for again


def test_an_endpoint_that_the_chain_contradicts_ends_the_run(lab: Street) -> None:
    lease, _ = lab.begun()
    lab.contract.rentals[lease.lease_id] = replace(lab.contract.rentals[lease.lease_id], ready_hash="0x" + "77" * 32)
    with pytest.raises(StopRun):
        lab.again().look(lease)


def test_an_offer_that_is_dearer_now_is_gone(lab: Street) -> None:
    [offer] = lab.market.offers(Wish())
    cheaper = replace(offer, rate=replace(offer.rate, per_hour=Money(449_999, USDC)))
    with pytest.raises(OfferGone, match=r"now costs 0\.45 USDC per hour"):
        lab.market.prepare(cheaper, lab.terms())


def test_what_does_not_fit_is_said_before_money_moves(lab: Street) -> None:
    [offer] = lab.market.offers(Wish())
    with pytest.raises(NoFunds):
        lab.market.prepare(offer, lab.terms(pay_at_most=Money(449_999, USDC)))
    with pytest.raises(OfferGone, match="leaves 900 s to inspect"):
        lab.market.prepare(offer, lab.terms(check_seconds=901))
    with pytest.raises(OfferGone):
        lab.market.prepare(replace(offer, offer_id="another"), lab.terms())
    assert lab.market.prepare(offer, lab.terms(seconds=99_999)).seconds == 36_000
    assert lab.market.prepare(offer, lab.terms(seconds=1)).seconds == 60


def test_a_rented_machine_is_not_offered_and_not_quoted(lab: Street) -> None:
    [offer] = lab.market.offers(Wish())
    lab.begun()
    assert lab.market.offers(Wish()) == []
    with pytest.raises(OfferGone):
        lab.market.prepare(offer, lab.terms(name="2"))


def test_a_market_with_another_contract_is_refused(tmp_path: Path) -> None:
    with street(tmp_path) as lab:
        lab.escrow.contract = replace(lab.contract, facts=replace(lab.contract.facts, escrow="0x" + "ee" * 20))
        with pytest.raises(Refused, match="on chain 31337"):
            lab.market.offers(Wish())


def test_a_market_that_is_not_there(lab: Street) -> None:
    lab.provider.stop()
    with pytest.raises(Unreachable):
        lab.market.offers(Wish())


