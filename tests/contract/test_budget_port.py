"""The port Escrow where the owner's wallet signs in a browser and a second key rents: on real chains, with Circle's token.

The person is played over HTTP, as the page would ask: the owner's account has USDC and not one wei of the chain's coin.
"""
from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import pytest
from eth_account.messages import encode_typed_data

from orchestrator.chain import authorization, budgets, contracts, typed, wallet
from orchestrator.chain.browser import BrowserWallet
from orchestrator.chain.escrow import ChainEscrow
from orchestrator.chain.networks import Limit
from orchestrator.chain.rpc import Rpc
from orchestrator.chain.wallet import Wallet
from orchestrator.domain.escrow import Budget
from orchestrator.domain.money import USDC, Money
from orchestrator.errors import NoFunds, NothingMade, OfferGone, Refused
from orchestrator.lab.deploy import GAS_WEI, mint, send
from orchestrator.second_row import Outbox
from tests.fakes import browser
from tests.fakes.browser import Person, somebody
from tests.fakes.labchain import Lab, a_key, a_word, an_access_hash, lab
from tests.fakes.outbox import DyingOutbox, Killed, MemoryOutbox

pytestmark = pytest.mark.money
CAP, PURSE, DAY = 2_000_000, 5_000_000, 86_400


@pytest.fixture(scope="module", params=["anvil"])
def world(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


ON_BOTH = pytest.mark.parametrize("world", ["anvil", "py-evm"], indirect=True)


@dataclass
class Desk:
    """A laptop with a session key, and a person with a wallet in a browser."""

    world: Lab
    owner: Wallet
    session: Wallet
    outbox: MemoryOutbox
    person: Any

    def escrow(self, outbox: Outbox | None = None, **how: Any) -> ChainEscrow:
        theirs = BrowserWallet(self.world.facts, self.world.url, self.person, self.owner.address, patience_s=5)
        return self.world.escrow(outbox or self.outbox, who=self.session, owner=theirs, **how)

    def budget(self, cap: int = CAP, **changes: Any) -> Budget:
        found = self.escrow().budget(cap, 500_000, DAY, [self.world.provider.address])
        assert found is not None
        return replace(found, **changes)

    def rent(self, seconds: int = 600, **changes: Any) -> Any:
        quote, signature = self.world.quote(renter=self.owner.address, **changes)
        escrow = self.escrow()
        return escrow.create(a_key(), quote, signature, seconds, 10**9, an_access_hash(), [self.world.provider.address])

    @property
    def usdc(self) -> int:
        return self.world.usdc(self.owner.address)

    def coin(self, of: Wallet) -> int:
        return Rpc(self.world.url).balance(of.address)


@pytest.fixture
def desk(world: Lab) -> Desk:
    owner, session = somebody(), somebody()
    mint(world.url, world.folder, owner.address, PURSE)
    world.rpc("anvil_setBalance", session.address, hex(GAS_WEI))
    return Desk(world, owner, session, MemoryOutbox(), Person(owner))


def token(world: Lab, name: str, *arguments: Any) -> None:
    rpc = Rpc(world.url)
    data = rpc.contract(world.facts.token, contracts.usdc().token_abi).encode(name, *arguments)
    send(rpc, wallet.load_key(world.folder / "keys" / "deployer.key"), world.facts.token, data)


# ---- a whole life ----


@ON_BOTH
def test_one_signature_pays_for_a_run_and_everything_goes_home(desk: Desk) -> None:
    world, escrow, budget = desk.world, desk.escrow(), desk.budget()
    assert escrow.account == desk.owner.address and budget.session == desk.session.address
    assert escrow.open_budget(budget) and desk.usdc == PURSE - CAP
    assert escrow.open_budget(budget) and len(desk.person.pages) == 1            # again: the same, and nobody is asked

    rental = desk.rent()
    assert (rental.renter, rental.deposit, rental.status, rental.budget) == (desk.owner.address, 66_667, "funded", 1)
    world.act(world.provider, "activate", rental.id, a_word())
    assert escrow.extend_to(rental.id, 1000, 111_112).deposit == 111_112
    assert (found := escrow.open_budget_now()) is not None and found.left == CAP - 111_112
    world.later(300)
    ended = escrow.close(rental.id, False, "", "sha256:" + "ab" * 32)
    assert (ended.outcome, ended.closed_by, ended.report_digest) == ("ended", "renter", "0x" + "ab" * 32)

    left, coin = escrow.close_budget(budget)
    assert left == CAP - 111_112 and desk.usdc == PURSE - ended.paid - ended.fee
    assert coin.units == desk.coin(desk.owner) > GAS_WEI * 9 // 10 and desk.coin(desk.session) < GAS_WEI // 100
    assert 0 < escrow.budget_spent(budget).units < escrow.gas_of_a_life().units * 3
    assert escrow.close_budget(budget)[0] is None and escrow.open_budget_now() is None and len(desk.person.pages) == 1
    assert escrow.open_rentals() == [] and world.usdc(desk.session.address) == 0


def test_the_signed_number_is_the_contracts_digest_of_the_terms(desk: Desk) -> None:
    budget = desk.budget()
    ours = typed.digest(typed.message(desk.world.facts, budget))
    assert "0x" + bytes(desk.world.escrow_read("budgetDigest", budgets._struct(budget))).hex() == ours


def test_a_refund_that_the_token_refused_is_brought_home(desk: Desk) -> None:
    escrow, budget = desk.escrow(), desk.budget()
    escrow.open_budget(budget)
    token(desk.world, "blacklist", desk.owner.address)
    assert escrow.close_budget(budget)[0] == CAP and escrow.credit() == CAP
    token(desk.world, "unBlacklist", desk.owner.address)
    desk.world.rpc("anvil_setBalance", desk.session.address, hex(GAS_WEI))
    escrow.withdraw()
    assert (escrow.credit(), desk.usdc) == (0, PURSE)


# ---- crashes ----


@pytest.mark.parametrize("verb", ["open", "close"])
def test_a_crash_after_signing_opens_or_closes_it_once(desk: Desk, verb: str) -> None:
    """The process dies with the transaction kept and not sent; the next one needs the journal's terms and no person."""
    budget = desk.budget()
    if verb == "close":
        desk.escrow().open_budget(budget)
    with pytest.raises(Killed):
        dying = desk.escrow(DyingOutbox(desk.outbox))
        dying.open_budget(budget) if verb == "open" else dying.close_budget(budget)
    assert desk.usdc == (PURSE if verb == "open" else PURSE - CAP)
    if verb == "open":
        assert desk.escrow().open_budget(budget) and desk.usdc == PURSE - CAP
    desk.escrow().close_budget(budget)
    assert desk.usdc == PURSE and desk.escrow().open_budget_now() is None
    assert len(desk.person.pages) == 1 and desk.coin(desk.owner) > GAS_WEI * 9 // 10


def test_a_release_alone_finishes_what_was_begun(desk: Desk) -> None:
    """Dead between signing and sending, and nobody resumes: `end` brings the money home."""
    budget = desk.budget()
    with pytest.raises(Killed):
        desk.escrow(DyingOutbox(desk.outbox)).open_budget(budget)
    assert desk.escrow().close_budget(budget)[0] == CAP and desk.usdc == PURSE
    assert desk.escrow().close_budget(desk.budget())[0] is None                  # never opened: nothing to close


def test_an_empty_laptop_with_another_key(desk: Desk) -> None:
    """The lost laptop's rental is ended by the owner's signature, its budget goes home when it has run out, by anyone."""
    escrow, budget = desk.escrow(), desk.budget()
    escrow.open_budget(budget)
    rental = desk.rent()
    desk.world.act(desk.world.provider, "activate", rental.id, a_word())
    empty = Desk(desk.world, desk.owner, somebody(), MemoryOutbox(), desk.person)
    desk.world.rpc("anvil_setBalance", empty.session.address, hex(GAS_WEI))
    seen, found = empty.escrow().open_rentals(), empty.escrow().open_budget_now()
    assert [r.id for r in seen] == [rental.id] and found is not None and found.left == CAP - rental.deposit
    with pytest.raises(NothingMade, match="open budget already"):
        empty.escrow().open_budget(empty.budget())
    with pytest.raises(NothingMade, match="no part in this"):
        empty.escrow().close_any_budget()
    theirs = BrowserWallet(desk.world.facts, desk.world.url, desk.person, desk.owner.address)
    signature, = theirs.sign_ends(seen)
    desk.world.act(empty.session, "endSigned", rental.id, "0x" + "00" * 32, bytes.fromhex(signature[2:]))
    desk.world.later(DAY, block=True)
    assert empty.escrow().close_any_budget() == CAP - rental.deposit and empty.escrow().close_any_budget() is None
    closed = escrow.view(rental.id)
    assert desk.usdc == PURSE - closed.paid - closed.fee


def test_the_coin_stays_where_something_needs_it(desk: Desk) -> None:
    """A rental of a lost run can only be ended by this key; a second run's budget lives by its coin."""
    first = desk.budget()
    desk.escrow().open_budget(first)
    rental = desk.rent()
    left, coin = desk.escrow().close_budget(first)
    assert (left, coin.units) == (CAP - rental.deposit, 0)
    desk.escrow().close(rental.id, False, "", "")
    desk.escrow().open_budget(second := desk.budget(cap=CAP - 1))
    assert desk.escrow().close_budget(first) == (None, Money(0, coin.currency))  # an old release, seen through late
    assert desk.escrow().close_budget(second)[0] == CAP - 1 and desk.usdc == PURSE


# ---- what the session cannot do ----


def test_a_stolen_session_key_pays_only_whom_the_owner_listed(desk: Desk) -> None:
    escrow, thief = desk.escrow(), somebody()
    escrow.open_budget(desk.budget())
    mine = [thief.address]
    quote, _ = desk.world.quote(renter=desk.owner.address, provider=thief.address)
    signature = thief.sign_message(typed.message(desk.world.facts, quote))
    with pytest.raises(NothingMade, match="not those that the budget was signed for"):
        escrow.create(a_key(), quote, signature, 600, 10**9, an_access_hash(), mine)
    with pytest.raises(NothingMade, match="no part in this"):
        escrow.create(a_key(), quote, signature, 600, 10**9, an_access_hash(), [desk.world.provider.address])
    with pytest.raises(NothingMade, match="500000 were allowed"):
        desk.rent(pricePerHour=500_001)
    with pytest.raises(NoFunds, match=r"the budget holds 2\.00 USDC, 4\.00001 USDC"):
        desk.rent(36_000)
    with pytest.raises(OfferGone, match="not for"):
        escrow.create(a_key(), *desk.world.quote(renter=desk.session.address), 600, 10**9, an_access_hash())
    assert desk.usdc == PURSE - CAP and escrow.open_rentals() == []


# ---- bad input: nothing is paid ----


def signed_elsewhere(desk: Desk, **of_domain: Any) -> Any:
    """A person whose wallet signs the same message under another domain."""
    def answer(url: str) -> None:
        base = url
        question = json.loads(browser.fetch(base + "ask", **{"Sealtune-Token": base.rstrip("/").rsplit("/", 1)[1]}))
        for one in question["documents"]:
            one["typed"]["domain"].update(of_domain)
        signatures = [desk.owner.sign_message(encode_typed_data(full_message=one["typed"]))
                      for one in question["documents"]]
        browser.visit(base, desk.owner, signatures=signatures)

    return lambda url: threading.Thread(target=answer, args=(url,), daemon=True).start()


BAD_PEOPLE = [
    ("says no", lambda d: Person(d.owner, refused="the person said no"), "said no"),
    ("nobody is there", lambda d: lambda url: None, "nobody answered"),
    ("another account", lambda d: Person(somebody()), "not the signature of"),
    ("another chain", lambda d: signed_elsewhere(d, chainId=1), "not the signature of"),
    ("USDC.e", lambda d: signed_elsewhere(d, name="USD Coin (PoS)", version="1"), "not the signature of"),
    ("another token", lambda d: signed_elsewhere(d, verifyingContract="0x" + "27" * 20), "not the signature of"),
    ("no signature", lambda d: Person(d.owner, signatures=[]), "did not sign all of it"),
    ("rubbish", lambda d: Person(d.owner, signatures=["0x" + "00" * 65]), "not the signature of"),
]


@pytest.mark.parametrize(("person", "words"), [case[1:] for case in BAD_PEOPLE], ids=[case[0] for case in BAD_PEOPLE])
def test_what_is_not_this_signature_pays_nothing(desk: Desk, person: Any, words: str) -> None:
    desk.person = person(desk)
    with pytest.raises(NothingMade, match=words) as no:
        desk.escrow().open_budget(desk.budget())
    assert "nothing was paid" in str(no.value) and desk.usdc == PURSE and desk.coin(desk.session) == GAS_WEI
    assert desk.escrow().open_budget_now() is None and not desk.outbox.kept


def test_what_cannot_be_paid_asks_nobody(desk: Desk) -> None:
    world, escrow = desk.world, desk.escrow()
    ran_out = desk.budget(expiry=1)
    cases = [(desk.budget(cap=PURSE + 1), r"has 5\.000000 USDC, 5\.000001"),
             (desk.budget(owner=world.renter.address), "the wallet is")]
    for budget, words in cases:
        with pytest.raises(NothingMade, match=words):
            escrow.open_budget(budget)
    with pytest.raises(NoFunds, match="above the limit"):
        desk.escrow(limit=Limit(Money(CAP - 1, USDC), True)).open_budget(desk.budget())
    token(world, "pause")
    with pytest.raises(NoFunds, match="paused"):
        escrow.open_budget(desk.budget())
    token(world, "unpause")
    world.rpc("anvil_setBalance", desk.session.address, hex(1000))
    with pytest.raises(NoFunds, match=r"second key .* has 0\.000000 POL"):
        escrow.open_budget(desk.budget())
    world.rpc("anvil_setBalance", desk.session.address, hex(GAS_WEI))
    assert not desk.person.pages and not desk.outbox.kept and desk.usdc == PURSE
    with pytest.raises(NothingMade, match="possible until"):
        escrow.open_budget(ran_out)
    assert desk.usdc == PURSE and not desk.outbox.kept


def test_an_account_with_code_is_refused_before_it_is_asked(desk: Desk) -> None:
    """EIP-7702 or a contract account: USDC would ask its code (ERC-1271)."""
    desk.world.rpc("anvil_setCode", desk.owner.address, "0xef0100" + "27" * 20)
    with pytest.raises(NothingMade, match="EIP-7702") as no:
        desk.escrow().open_budget(desk.budget())
    assert not desk.person.pages and "keystore wallet" in str(no.value.hint)


def test_an_authorization_is_used_once(desk: Desk) -> None:
    budget = desk.budget()
    desk.escrow().open_budget(budget)
    desk.escrow().close_budget(budget)
    desk.world.rpc("anvil_setBalance", desk.session.address, hex(GAS_WEI))
    with pytest.raises(NothingMade, match="used or taken back"):
        desk.escrow(MemoryOutbox()).open_budget(budget)
    assert desk.usdc == PURSE and len(desk.person.pages) == 1


def test_a_token_that_signs_for_another_domain_is_refused(desk: Desk) -> None:
    """A node that lies about the token's name would make the person sign what is worth nothing."""
    found = authorization.domain(Rpc(desk.world.url), desk.world.facts)
    assert authorization.separator(found) != authorization.separator({**found, "name": "USD Coin (PoS)"})
    with pytest.raises(Refused, match="another domain"):
        authorization.domain(Rpc(desk.world.url), replace(desk.world.facts, chain_id=80002))
