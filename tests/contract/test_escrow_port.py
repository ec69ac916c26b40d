"""The port Escrow against real chains: anvil, and the lab's own on py-evm, with Circle's token on both."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.chain import contracts, typed, wallet
from orchestrator.chain.rpc import Rpc
from orchestrator.domain.money import POL
from orchestrator.domain.names import Reason
from orchestrator.errors import LeaveNode, NothingMade, OfferGone, StopRun, Transient
from orchestrator.lab.deploy import send
from tests.fakes.labchain import NO_FEE, Lab, a_key, a_word, an_access_hash, lab
from tests.fakes.outbox import MemoryOutbox

pytestmark = pytest.mark.money


@pytest.fixture(scope="module", params=["anvil"])
def world(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    folder: Path = tmp_path_factory.mktemp(request.param)
    with lab(request.param, folder) as found:
        yield found


ON_BOTH = pytest.mark.parametrize("world", ["anvil", "py-evm"], indirect=True)


@pytest.fixture
def outbox() -> MemoryOutbox:
    return MemoryOutbox()


@ON_BOTH
def test_a_whole_life_with_exact_figures(world: Lab, outbox: MemoryOutbox) -> None:
    escrow, access = world.escrow(outbox), an_access_hash()
    quote, signature = world.quote()
    before, earned = world.usdc(world.renter.address), world.escrow_read("creditOf", world.provider.address)
    key = a_key()

    escrow.check_quote(quote, signature)
    rental = escrow.create(key, quote, signature, 600, 66_667, access)
    assert (rental.id, rental.status, rental.deposit, rental.seconds) == (escrow.rental_id(key), "funded", 66_667, 600)
    assert (rental.key, rental.access_hash, rental.renter) == ("0x" + key, access, escrow.account)
    assert world.usdc(world.renter.address) == before - 66_667
    with pytest.raises(Transient, match="not activated"):
        escrow.check_ready(rental, *world.ready(rental.id, access)[:2])

    ready, signed, ready_hash = world.ready(rental.id, access)
    world.act(world.provider, "activate", rental.id, ready_hash)
    rental = escrow.view(rental.id)
    assert rental.status == "active" and rental.ends_at == rental.started_at + 600
    assert rental.inspect_until == rental.started_at + 900
    met = escrow.check_ready(rental, ready, signed)
    assert (met.host, met.port, met.host_keys, met.trust) == ("node.example", 2222, ready.hostKeys, "signed")

    assert escrow.extend_to(rental.id, 1000, 111_112).deposit == 111_112           # ceil(400001 * 1000 / 3600)
    assert escrow.extend_to(rental.id, 1000, 111_112).seconds == 1000              # again: nothing happens
    assert world.usdc(world.renter.address) == before - 111_112

    world.later(300)
    ended = escrow.close(rental.id, hardware=False, evidence="", report="sha256:" + "ab" * 32)
    seconds = ended.closed_at - ended.started_at
    accrued = 400_001 * seconds // 3600
    assert 300 <= seconds < 320
    assert (ended.status, ended.outcome, ended.closed_by) == ("closed", "ended", "renter")
    fee = accrued * 300 // 10_000
    assert (ended.accrued, ended.fee, ended.paid) == (accrued, fee, accrued - fee)
    assert ended.paid + ended.fee + ended.refunded == ended.deposit == 111_112
    assert ended.report_digest == "0x" + "ab" * 32
    assert world.usdc(world.renter.address) == before - accrued
    assert world.escrow_read("creditOf", world.provider.address) - earned == ended.paid

    assert escrow.close(rental.id, False, "", "") == ended
    assert escrow.create(key, quote, signature, 600, 66_667, access) == ended       # the key is used for ever
    transaction = escrow.closing_transaction(ended)
    assert transaction and int(world.rpc("eth_getTransactionReceipt", transaction)["status"], 16) == 1
    gas = escrow.spent(rental.id)
    assert gas.currency == POL and 0 < gas.units < escrow.gas_of_a_life().units * 3
    assert escrow.open_rentals() == [] and escrow.credit() == 0


@ON_BOTH
def test_what_is_seen_without_a_block_is_what_the_contract_will_say(world: Lab, outbox: MemoryOutbox) -> None:
    escrow = world.escrow(outbox)
    rental = _active(world, escrow, seconds=120)
    world.later(60)
    assert escrow.view(rental.id).accrued >= 400_001 * 60 // 3600
    world.later(61)
    seen = escrow.view(rental.id)
    assert seen.status == "expired" and seen.accrued == seen.price_per_hour * 120 // 3600
    world.later(0, block=True)
    assert world.escrow_read("statusOf", rental.id) == 4
    assert world.escrow_read("accruedOf", rental.id) == escrow.view(rental.id).accrued == seen.accrued
    closed = escrow.close(rental.id, False, "", "0x" + "cd" * 32)
    assert (closed.outcome, closed.closed_by, closed.report_digest) == ("expired", "renter", "0x" + "cd" * 32)


def test_hardware_inside_the_window_costs_nothing(world: Lab, outbox: MemoryOutbox) -> None:
    escrow = world.escrow(outbox)
    before = world.usdc(world.renter.address)
    rental = _active(world, escrow)
    closed = escrow.close(rental.id, True, evidence="0x" + "ee" * 32, report="")
    assert (closed.outcome, closed.paid, closed.fee, closed.report_digest) == ("rejected", 0, 0, "0x" + "ee" * 32)
    assert world.usdc(world.renter.address) == before


def test_hardware_too_late_is_an_end_like_any_other(world: Lab, outbox: MemoryOutbox) -> None:
    escrow = world.escrow(outbox)
    rental = _active(world, escrow, inspectionSeconds=10)
    world.later(30)
    closed = escrow.close(rental.id, True, "0x" + "ee" * 32, "0x" + "aa" * 32)
    assert (closed.outcome, closed.report_digest) == ("ended", "0x" + "aa" * 32) and closed.paid > 0


def test_never_activated_is_cancelled(world: Lab, outbox: MemoryOutbox) -> None:
    escrow = world.escrow(outbox)
    before = world.usdc(world.renter.address)
    early = escrow.close(_funded(world, escrow).id, False, "", "")
    late = _funded(world, escrow)
    world.later(601)
    assert escrow.view(late.id).status == "no-show"
    late = escrow.close(late.id, False, "", "")
    assert (early.outcome, early.closed_by, late.outcome) == ("cancelled", "renter", "no-show")
    assert world.usdc(world.renter.address) == before


@ON_BOTH
def test_closed_by_the_provider(world: Lab, outbox: MemoryOutbox) -> None:
    escrow = world.escrow(outbox)
    rental = _active(world, escrow)
    world.act(world.provider, "end", rental.id, a_word())
    seen = escrow.view(rental.id)
    assert (seen.closed_by, seen.outcome, seen.paid) == ("provider", "abandoned", 0)
    assert escrow.close(rental.id, True, "", "") == seen
    transaction = escrow.closing_transaction(seen)
    assert transaction is not None
    assert world.rpc("eth_getTransactionByHash", transaction)["from"] == world.provider.address.lower()


def test_open_rentals_of_an_empty_laptop(world: Lab, outbox: MemoryOutbox) -> None:
    escrow = world.escrow(outbox)
    mine = [_funded(world, escrow), _active(world, escrow)]
    elsewhere = world.escrow(MemoryOutbox()).open_rentals()
    assert [(r.id, r.status) for r in elsewhere] == [(mine[0].id, "funded"), (mine[1].id, "active")]
    for rental in elsewhere:
        world.escrow(MemoryOutbox()).close(rental.id, False, "", "")
    assert escrow.open_rentals() == []


def test_quotes_that_cannot_be_had(world: Lab, outbox: MemoryOutbox) -> None:
    escrow = world.escrow(outbox)
    quote, signature = world.quote()
    cases = [
        (replace(quote, pricePerHour=1), signature, "not signed"),
        (quote, "0x" + "00" * 65, "not signed"),
        (quote, "rubbish", "not signed"),
        (*world.quote(renter=world.provider.address), "not for"),
        (*world.quote(validUntil=5), "ran out"),
        (*world.quote(feeBps=1501), "not allowed"),
        (replace(quote, pricePerHour=-1), signature, "malformed"),
        (replace(quote, provider="0x12"), signature, "malformed"),
    ]
    for given, signed, words in cases:
        with pytest.raises(OfferGone, match=words):
            escrow.check_quote(given, signed)
    escrow.create(a_key(), quote, signature, 600, 10**6, an_access_hash())
    with pytest.raises(OfferGone, match="used"):
        escrow.check_quote(quote, signature)
    with pytest.raises(OfferGone, match="used"):
        escrow.create(a_key(), quote, signature, 600, 10**6, an_access_hash())
    for rental in escrow.open_rentals():
        escrow.close(rental.id, False, "", "")


def test_no_more_than_was_allowed(world: Lab, outbox: MemoryOutbox) -> None:
    escrow = world.escrow(outbox)
    quote, signature = world.quote(**NO_FEE)
    with pytest.raises(NothingMade, match="66666 were allowed"):
        escrow.create(a_key(), quote, signature, 600, 66_666, an_access_hash())
    with pytest.raises(NothingMade, match="86401 s of rental where 60 to 86400"):
        escrow.create(a_key(), quote, signature, 86_401, 10**9, an_access_hash())
    rental = _active(world, escrow)
    with pytest.raises(NothingMade, match="111111 were allowed"):
        escrow.extend_to(rental.id, 1000, 111_111)
    with pytest.raises(NothingMade, match="where 601 to 86400"):
        escrow.extend_to(rental.id, 86_401, 10**9)
    with pytest.raises(NothingMade, match="no rental"):
        escrow.close(a_word(), False, "", "")
    assert escrow.view(a_word()).status == "none"
    world.later(601)
    with pytest.raises(NothingMade, match="possible until"):
        escrow.extend_to(rental.id, 1000, 10**9)
    escrow.close(rental.id, False, "", "")


def test_a_node_that_is_not_the_one_on_chain(world: Lab, outbox: MemoryOutbox) -> None:
    escrow, access = world.escrow(outbox), an_access_hash()
    rental = _funded(world, escrow, access)
    ready, signature, ready_hash = world.ready(rental.id, access)
    world.act(world.provider, "activate", rental.id, ready_hash)
    rental = escrow.view(rental.id)
    other, by_other, _ = world.ready(rental.id, access, host="elsewhere.example")
    wrong = world.renter.sign_message(typed.message(world.facts, ready))
    for given, signed in ((other, by_other), (ready, wrong), (ready, "0x"), (replace(ready, port=-1), signature)):
        with pytest.raises(StopRun) as left:
            escrow.check_ready(rental, given, signed)
        assert left.value.reason is Reason.HOST_KEY
    escrow.close(rental.id, True, "", "")


@pytest.mark.parametrize(("changes", "kind"), [
    ({"host": "-oProxyCommand=x"}, LeaveNode), ({"host": "a b"}, LeaveNode), ({"user": "root;reboot"}, LeaveNode),
    ({"port": 0}, LeaveNode), ({"hostKeys": ()}, LeaveNode), ({"hostKeys": ("ssh-rsa AAAA",)}, LeaveNode),
    ({"rentalId": "0x" + "01" * 32}, StopRun), ({"accessHash": "0x" + "01" * 32}, StopRun)])
def test_a_signed_endpoint_that_is_none(world: Lab, outbox: MemoryOutbox, changes: dict[str, Any],
                                      kind: type[Exception]) -> None:
    escrow, access = world.escrow(outbox), an_access_hash()
    rental = replace(_blank(world), access_hash=access)
    ready, signature, ready_hash = world.ready(rental.id, access, **changes)
    with pytest.raises(kind):
        escrow.check_ready(replace(rental, ready_hash=ready_hash), ready, signature)
    later, signed, its_hash = world.ready(rental.id, access, notBefore=1 << 40)
    with pytest.raises(Transient, match="ready in"):
        escrow.check_ready(replace(rental, ready_hash=its_hash), later, signed)


@ON_BOTH
def test_a_refund_that_cannot_be_pushed_is_brought_home_later(world: Lab, outbox: MemoryOutbox) -> None:
    escrow = world.escrow(outbox)
    rental = _active(world, escrow)
    before = world.usdc(world.renter.address)
    _blacklist(world, True)
    try:
        world.act(world.provider, "end", rental.id, a_word())
        assert escrow.credit() == escrow.view(rental.id).refunded == 66_667
    finally:
        _blacklist(world, False)
    escrow.withdraw()
    escrow.withdraw()
    assert escrow.credit() == 0 and world.usdc(world.renter.address) == before + 66_667


def _blank(world: Lab) -> Any:
    return replace(world.escrow(MemoryOutbox()).view(a_word()), provider=world.provider.address)


def _funded(world: Lab, escrow: Any, access: str = "", seconds: int = 600, **changes: Any) -> Any:
    quote, signature = world.quote(**changes)
    return escrow.create(a_key(), quote, signature, seconds, 10**9, access or an_access_hash())


def _active(world: Lab, escrow: Any, seconds: int = 600, **changes: Any) -> Any:
    rental = _funded(world, escrow, seconds=seconds, **changes)
    world.act(world.provider, "activate", rental.id, a_word())
    return escrow.view(rental.id)


def _blacklist(world: Lab, on: bool) -> None:
    rpc = Rpc(world.url)
    token = rpc.contract(world.facts.token, contracts.usdc().token_abi)
    deployer = wallet.load_key(world.folder / "keys" / "deployer.key")
    send(rpc, deployer, world.facts.token, token.encode("blacklist" if on else "unBlacklist", world.renter.address))
