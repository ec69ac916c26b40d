"""A wallet's money on a real chain: looked at without its key, ended in bulk, sent home once whatever happens."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from orchestrator.chain import contracts, create2, typed, wallet
from orchestrator.chain.escrow import struct
from orchestrator.chain.funds import Purse
from orchestrator.chain.networks import Limit
from orchestrator.chain.rpc import Rpc
from orchestrator.chain.signer import Signer, Watcher
from orchestrator.chain.wallet import Wallet
from orchestrator.domain.money import POL, USDC, Money
from orchestrator.errors import BadInput, NoFunds, NothingMade, OutcomeUnknown, Refused
from orchestrator.lab.deploy import GAS_WEI, mint, send
from tests.fakes.counting import counting
from tests.fakes.labchain import Lab, a_key, a_word, an_access_hash, lab
from tests.fakes.outbox import DyingOutbox, Killed, MemoryOutbox

pytestmark = pytest.mark.money
HOME = "0x" + "5e" * 20


@pytest.fixture(scope="module", params=["anvil"])
def world(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


ON_BOTH = pytest.mark.parametrize("world", ["anvil", "py-evm"], indirect=True)


@pytest.fixture
def someone(world: Lab) -> Wallet:
    """A new account with 20 USDC and some gas."""
    key = a_key()
    made = Wallet(bytes.fromhex(key))
    mint(world.url, world.folder, made.address, 20 * 10**6)
    world.rpc("anvil_setBalance", made.address, hex(GAS_WEI))
    return made


def purse(world: Lab, who: Signer, outbox: Any = None, url: str = "", **changes: Any) -> Purse:
    facts = replace(world.facts, **changes)
    return Purse(Rpc(url or world.url), who, outbox or MemoryOutbox(), facts, wait_s=10)


def rent(world: Lab, who: Wallet, seconds: int = 600, begun: bool = True) -> Any:
    escrow = world.escrow(MemoryOutbox(), who=who)
    rental = escrow.create(a_key(), *world.quote(renter=who.address), seconds, 10**9, an_access_hash())
    if begun:
        world.act(world.provider, "activate", rental.id, a_word())
    return escrow.view(rental.id)


def rent_many(world: Lab, who: Wallet, count: int) -> list[str]:
    """Ids, every other one begun; the short way, past the client."""
    rpc, ids = Rpc(world.url), []
    token = rpc.contract(world.facts.token, contracts.usdc().token_abi)
    send(rpc, who, world.facts.token, token.encode("approve", world.facts.escrow, 10**9))
    for n in range(count):
        key = "0x" + a_key()
        quote, signature = world.quote(renter=who.address)
        world.act(who, "create", key, struct(quote), bytes.fromhex(signature[2:]), 600, 10**9, an_access_hash())
        ids.append(typed.rental_id(world.facts, who.address, key))
        if n % 2:
            world.act(world.provider, "activate", ids[-1], a_word())
    return ids


def as_deployer(world: Lab, name: str, *arguments: Any) -> None:
    rpc = Rpc(world.url)
    token = rpc.contract(world.facts.token, contracts.usdc().token_abi)
    deployer = wallet.load_key(world.folder / "keys" / "deployer.key")
    send(rpc, deployer, world.facts.token, token.encode(name, *arguments))


# ---- looking ----


@ON_BOTH
def test_everything_is_seen_without_the_key(world: Lab, someone: Wallet) -> None:
    running, waiting = rent(world, someone), rent(world, someone, 1200, begun=False)
    looked = purse(world, Watcher(someone.address.lower()))
    found = looked.funds()
    assert found.address == someone.address and found.network.chain_id == 31337
    assert found.usdc.units == 20 * 10**6 - running.deposit - waiting.deposit
    assert 0 < found.coin.units < GAS_WEI
    assert found.rentals is not None and found.locked and found.locked.units == running.deposit + waiting.deposit
    assert {r.id: r.can_still_cost for r in found.rentals}[waiting.id] == waiting.deposit
    assert (found.paused, found.blacklisted, found.credit, found.why) == (False, False, Money(0, USDC), "")
    with pytest.raises(Refused, match="only looked at"):
        looked.close(found.rentals)
    with pytest.raises(Refused, match="only looked at"):
        looked.escrow.sign_request("GET", "/", b"", a_word())


def test_what_is_wrong_is_said(world: Lab, someone: Wallet) -> None:
    as_deployer(world, "blacklist", someone.address)
    as_deployer(world, "pause")
    try:
        found = purse(world, someone).funds()
        assert (found.paused, found.blacklisted) == (True, True)
        with pytest.raises(NothingMade, match="paused"):
            purse(world, someone).sweep(HOME)
    finally:
        as_deployer(world, "unpause")
    with pytest.raises(NothingMade, match="blacklisted"):
        purse(world, someone).sweep(HOME)
    assert purse(world, someone).funds().usdc.units == 20 * 10**6


def test_another_chain_another_token_no_escrow(world: Lab, someone: Wallet) -> None:
    with pytest.raises(Refused, match="is on chain 31337, not 80002"):
        purse(world, someone, chain_id=80002).funds()
    with pytest.raises(Refused, match="there is no token at"):
        purse(world, someone, token=HOME).funds()
    found = purse(world, someone, escrow=HOME).funds()
    assert (found.rentals, found.locked, found.credit) == (None, None, None) and "no contract at" in found.why


def test_no_deposit_above_the_limit(world: Lab, someone: Wallet) -> None:
    quote, signature = world.quote(renter=someone.address)
    for limit, words in ((Limit(Money(10**6, USDC), False), "not been audited"),
                         (Limit(Money(66_666, USDC), True), "above the limit")):
        limited = Purse(Rpc(world.url), someone, MemoryOutbox(), world.facts, limit).escrow
        with pytest.raises(NoFunds, match=words):
            limited.create(a_key(), quote, signature, 600, 10**9, an_access_hash())
    limited = Purse(Rpc(world.url), someone, MemoryOutbox(), world.facts, Limit(Money(66_667, USDC), True)).escrow
    rental = limited.create(a_key(), quote, signature, 600, 10**9, an_access_hash())
    world.act(world.provider, "activate", rental.id, a_word())
    with pytest.raises(NoFunds, match="above the limit"):
        limited.extend_to(rental.id, 601, 10**9)
    assert limited.close(rental.id, False, "", "").status == "closed"


# ---- home ----


@ON_BOTH
def test_all_of_it_goes_home(world: Lab, someone: Wallet) -> None:
    to, before = Wallet(bytes.fromhex(a_key())).address, 0
    mine = purse(world, someone)
    swept = mine.sweep(to)
    assert (swept.usdc.units, world.usdc(to) - before, world.usdc(someone.address)) == (20 * 10**6, 20 * 10**6, 0)
    assert Rpc(world.url).balance(to) == swept.coin.units > GAS_WEI * 99 // 100
    assert len(swept.transactions) == 2 and swept.final and not swept.earlier and swept.left.units < GAS_WEI // 100
    again = mine.sweep(to)
    assert (again.transactions, again.usdc, again.coin) == ((), Money(0, USDC), Money(0, POL))


@pytest.mark.parametrize("lives", [0, 1])
def test_a_crash_in_the_middle_sends_nothing_twice(world: Lab, someone: Wallet, lives: int) -> None:
    """After the first or the second transaction was signed and kept, before it was sent."""
    to, outbox = Wallet(bytes.fromhex(a_key())).address, MemoryOutbox()
    with pytest.raises(Killed):
        purse(world, someone, DyingOutbox(outbox, lives)).sweep(to)
    sent = world.usdc(to)
    assert sent == (20 * 10**6 if lives else 0)
    late = 0 if lives else 7             # what comes in between goes home as well, as long as there is gas
    if late:
        mint(world.url, world.folder, someone.address, late)
    swept = purse(world, someone, outbox).sweep(to)
    assert swept.earlier and world.usdc(to) == 20 * 10**6 + late and world.usdc(someone.address) == 0
    assert Rpc(world.url).balance(to) > GAS_WEI * 99 // 100
    assert Rpc(world.url).nonce(someone.address) == (2 if lives else 3)


def test_nothing_is_sent_while_rentals_are_open(world: Lab, someone: Wallet) -> None:
    rental = rent(world, someone)
    mine = purse(world, someone)
    with pytest.raises(Refused, match="1 rentals of this wallet are open"):
        mine.sweep(HOME)
    for wrong in (someone.address, world.facts.token, world.facts.escrow, "0x" + "00" * 20):
        with pytest.raises(BadInput):
            mine.sweep(wrong)
    assert mine.close([rental])[0].rental.status == "closed"
    assert mine.sweep(HOME).usdc.units > 0


def test_a_credit_comes_home_first(world: Lab, someone: Wallet) -> None:
    rental = rent(world, someone)
    as_deployer(world, "blacklist", someone.address)
    world.act(world.provider, "end", rental.id, a_word())
    as_deployer(world, "unBlacklist", someone.address)
    mine = purse(world, someone)
    assert mine.funds().credit == Money(rental.deposit, USDC)
    swept = mine.sweep(HOME)
    assert (swept.credit.units, swept.usdc.units) == (rental.deposit, 20 * 10**6)


# ---- many at a time ----


def test_fifty_rentals_found_and_ended_with_few_questions(world: Lab, someone: Wallet) -> None:
    """From an empty state directory and the wallet alone: at most 60 requests besides the 50 sends."""
    made = rent_many(world, someone, 50)
    with counting(world.url) as counter:
        mine = purse(world, someone, url=counter.url)
        found = mine.escrow.open_rentals()
        assert {r.id for r in found} == set(made)
        closings = mine.close(found)
    assert [c.problem for c in closings] == [None] * 50
    assert {c.rental.outcome for c in closings} == {"cancelled", "ended"}
    assert counter.sends == 50
    assert counter.requests - counter.sends <= 60, counter.requests
    assert purse(world, someone).escrow.open_rentals() == []


@ON_BOTH
def test_some_of_many_were_closed_by_others(world: Lab, someone: Wallet) -> None:
    made = [rent(world, someone) for _ in range(3)]
    world.act(world.provider, "end", made[1].id, a_word())
    mine = purse(world, someone)
    closings = mine.close(made)
    assert [(c.problem, c.rental.status) for c in closings] == [(None, "closed")] * 3
    assert [c.rental.closed_by for c in closings] == ["renter", "provider", "renter"]
    assert all(c.problem is None for c in mine.close([]))


def test_a_crash_among_many_is_finished_by_the_next(world: Lab, someone: Wallet) -> None:
    made = [rent(world, someone) for _ in range(4)]
    outbox, before = MemoryOutbox(), Rpc(world.url).nonce(someone.address)
    with pytest.raises(Killed):
        purse(world, someone, DyingOutbox(outbox, 2)).close(made)
    closings = purse(world, someone, outbox).close(made)
    assert [c.rental.status for c in closings] == ["closed"] * 4 and not any(c.problem for c in closings)
    assert Rpc(world.url).nonce(someone.address) == before + 4


def test_gas_for_some_of_many(world: Lab, someone: Wallet) -> None:
    made = [rent(world, someone) for _ in range(3)]
    world.rpc("anvil_setBalance", someone.address, hex(350_000 * 10**9))
    closings = purse(world, someone).close(made)
    left = [c for c in closings if c.problem]
    assert 0 < len(left) < 3 and all(isinstance(c.problem, NoFunds) for c in left)
    world.rpc("anvil_setBalance", someone.address, hex(GAS_WEI))
    assert not any(c.problem for c in purse(world, someone).close([c.rental for c in left]))


def test_sent_but_not_seen_is_said_and_then_seen(world: Lab, someone: Wallet) -> None:
    made, outbox = [rent(world, someone) for _ in range(2)], MemoryOutbox()
    world.rpc("evm_setAutomine", False)
    try:
        hasty = Purse(Rpc(world.url), someone, outbox, world.facts, wait_s=0)
        assert [type(c.problem) for c in hasty.close(made)] == [OutcomeUnknown] * 2
    finally:
        world.rpc("evm_setAutomine", True)
        world.rpc("evm_mine")
    assert not any(c.problem for c in purse(world, someone, outbox).close(made))


# ---- deployment ----


def test_the_escrow_at_its_own_address(world: Lab, someone: Wallet, tmp_path: Path) -> None:
    home = create2.address(world.facts.token)
    before = {c.number: c.held for c in purse(world, someone, escrow=home).verify()}
    assert before[3] is False and before[5] is before[6] is before[7] is None
    done = purse(world, someone, escrow=home).deploy()
    assert done.facts == replace(world.facts, escrow=home) and done.transaction
    assert purse(world, someone, escrow=home).deploy().transaction is None
    checks = purse(world, someone, escrow=home).verify()
    assert all(c.held for c in checks) and [c.number for c in checks if not c.applies] == [2]
    other = purse(world, someone, escrow=world.facts.token).verify()
    assert [c.number for c in other if c.held is False] == [3]


@pytest.mark.parametrize("world", ["py-evm"], indirect=True)
def test_the_small_chain_has_no_proxy_and_says_so(world: Lab, someone: Wallet) -> None:
    with pytest.raises(Refused, match="no CREATE2 proxy") as no:
        purse(world, someone).deploy()
    assert "py-evm" in str(no.value.hint)

