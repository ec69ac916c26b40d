"""Budgets: opened by one signature, spent by a second key on rentals only, and what is left goes home."""
from __future__ import annotations

from typing import Any

import pytest

from . import doubles, model
from .chain import Chain
from .doubles import Token
from .world import (
    NOTHING,
    OTHER_PROVIDER,
    OTHER_RENTER,
    PROVIDER,
    PURSE,
    RENTER,
    SESSION,
    STRANGER,
    ZERO,
    Person,
    World,
    list_hash,
    person,
    refused,
)

pytestmark = pytest.mark.money
REPORT = b"\xfe" * 32
CAP = 2_000_000


def budget(world: World, owner: Person = RENTER) -> Any:
    return world.escrow.read("budgetOf", owner.address)


def running(world: World, **how: Any) -> bytes:
    id = world.create_by(SESSION, **how)
    world.escrow.send(PROVIDER.address, "activate", id, b"\x4e" * 32)
    return id


# ---- opening --------------------------------------------------------------------------------------------


def test_one_signature_opens_it_and_anyone_sends_it(world: World) -> None:
    terms = world.open_budget(world.terms(providersHash=b"\x07" * 32), sender=STRANGER)
    assert world.escrow.events() == [("BudgetOpened", {
        "owner": RENTER.address, "session": SESSION.address, "number": 1, "cap": CAP, "maxPricePerHour": 500_000,
        "expiry": terms.expiry})]
    assert vars(budget(world)) == {
        "session": SESSION.address, "left": CAP, "maxPricePerHour": 500_000, "expiry": terms.expiry, "number": 1,
        "providersHash": b"\x07" * 32}
    assert world.balance(RENTER.address) == PURSE - CAP
    assert world.escrow.read("held") == world.balance(world.escrow.address) == CAP
    assert world.escrow.read("budgetDigest", terms.tuple()) == world.budget_digest(terms)


@pytest.mark.parametrize(("field", "value"), [
    ("session", STRANGER.address), ("cap", CAP - 1), ("maxPricePerHour", 1), ("expiry", 1_900_090_000),
    ("providersHash", b"\x01" * 32), ("salt", b"\x99" * 32), ("owner", OTHER_RENTER.address)])
def test_no_field_of_the_signed_terms_can_be_changed(world: World, field: str, value: Any) -> None:
    terms = world.terms()
    signature = RENTER.sign(world.authorization(terms))
    with refused("Error", "FiatTokenV2: invalid signature"):
        world.escrow.send(SESSION.address, "openBudget", terms.but(**{field: value}).tuple(), signature)
    world.escrow.send(SESSION.address, "openBudget", terms.tuple(), signature)


def test_nobody_else_can_use_the_signature(world: World) -> None:
    """Circle's token pays the payee only, when the payee asks; another escrow is another payee."""
    terms = world.terms()
    signature = RENTER.sign(world.authorization(terms))
    arguments = (RENTER.address, world.escrow.address, terms.cap, 0, terms.expiry, world.budget_digest(terms))
    r, s, v = signature[:32], signature[32:64], signature[64]
    with pytest.raises(Exception, match="caller must be the payee"):
        world.chain.send(STRANGER.address, world.token.address, receive_call(arguments, v, r, s))
    other = World(world.token)
    with refused("Error", "FiatTokenV2: invalid signature"):
        other.escrow.send(STRANGER.address, "openBudget", terms.tuple(), signature)


def receive_call(arguments: tuple[Any, ...], v: int, r: bytes, s: bytes) -> bytes:
    from eth_abi.abi import encode
    from eth_utils.crypto import keccak

    kinds = ["address", "address", "uint256", "uint256", "uint256", "bytes32", "uint8", "bytes32", "bytes32"]
    name = f"receiveWithAuthorization({','.join(kinds)})"
    return bytes(keccak(text=name)[:4] + encode(kinds, [*arguments, v, r, s]))


def test_once_and_one_at_a_time(world: World) -> None:
    terms = world.open_budget()
    with refused("BudgetIsOpen", RENTER.address):
        world.open_budget()
    world.escrow.send(RENTER.address, "closeBudget", RENTER.address)
    with refused("Error", "FiatTokenV2: authorization is used or canceled"):
        world.open_budget(terms)
    world.open_budget()
    assert budget(world).number == 2


def test_owners_do_not_meet(world: World) -> None:
    world.open_budget()
    world.open_budget(world.terms(owner=OTHER_RENTER.address, cap=5), signer=OTHER_RENTER)
    assert (budget(world).left, budget(world, OTHER_RENTER).left) == (CAP, 5)
    assert world.escrow.read("held") == CAP + 5


@pytest.mark.parametrize(("wait", "fine"), [(-1, False), (0, False), (1, True)])
def test_not_after_its_end(world: World, wait: int, fine: bool) -> None:
    terms = world.terms(expiry=world.chain.now + wait)
    if fine:
        world.open_budget(terms)
    else:
        with refused("TooLate", terms.expiry, world.chain.now):
            world.open_budget(terms)


def test_a_wallet_with_code_opens_one_by_erc_1271(world: World) -> None:
    wallet = doubles.deploy(world.chain, "Wallet")
    world.token.send(RENTER.address, "transfer", wallet.address, CAP)
    terms = world.terms(owner=wallet.address)
    with refused("Error", "FiatTokenV2: invalid signature"):
        world.open_budget(terms)
    wallet.send(STRANGER.address, "approve", world.authorization(terms))
    world.open_budget(terms)


def test_a_payment_that_is_not_one_opens_no_budget() -> None:
    chain = Chain()
    token = doubles.deploy(chain, "OddToken")
    token.send(STRANGER.address, "mint", RENTER.address, PURSE)
    odd = World(token)
    token.send(STRANGER.address, "behave", Token.TAKES_FEE)
    with refused("BadDeposit", CAP, CAP - 1):
        odd.escrow.send(STRANGER.address, "openBudget", odd.terms().tuple(), b"")
    assert odd.escrow.read("held") == 0


# ---- spending -------------------------------------------------------------------------------------------


def test_the_session_rents_for_the_owner(world: World) -> None:
    world.open_budget()
    id = world.create_by(SESSION)
    r = world.rental(id)
    assert (r.renter, r.deposit, r.budget, r.state) == (RENTER.address, 400_000, 1, model.FUNDED)
    assert budget(world).left == CAP - 400_000
    assert world.escrow.read("held") == CAP
    assert world.escrow.read("openRentals", RENTER.address, False, 0, 9) == ((id,), 0)


@pytest.mark.parametrize("caller", [RENTER, PROVIDER, STRANGER, OTHER_RENTER], ids=lambda p: p.name)
def test_only_the_session_spends(world: World, caller: Person) -> None:
    world.open_budget()
    with refused("NotAllowed", caller.address):
        world.create_by(caller)


def test_a_session_spends_its_owners_budget_only(world: World) -> None:
    world.open_budget()
    world.open_budget(world.terms(owner=OTHER_RENTER.address, session=STRANGER.address), signer=OTHER_RENTER)
    with refused("NotAllowed", SESSION.address):
        world.create_by(SESSION, world.quote(renter=OTHER_RENTER.address))


def test_not_dearer_than_the_owner_allowed(world: World) -> None:
    world.open_budget()
    with refused("AboveMaximum", 500_001, 500_000):
        world.create_by(SESSION, world.quote(pricePerHour=500_001))
    world.create_by(SESSION, world.quote(pricePerHour=500_000))


def test_never_more_than_is_left(world: World) -> None:
    world.open_budget(world.terms(cap=399_999))
    with refused("AboveMaximum", 400_000, 399_999):
        world.create_by(SESSION)
    world.open_budget(world.terms(owner=OTHER_RENTER.address, cap=400_000), signer=OTHER_RENTER)
    world.create_by(SESSION, world.quote(renter=OTHER_RENTER.address))
    assert budget(world, OTHER_RENTER).left == 0


def test_only_with_the_providers_of_the_list(world: World) -> None:
    listed = (OTHER_PROVIDER.address, PROVIDER.address)
    world.open_budget(world.terms(providersHash=list_hash(listed)))
    for wrong in ((), listed[::-1], listed[:1], (*listed, STRANGER.address)):
        with refused("BadProviders"):
            world.create_by(SESSION, providers=wrong)
    with refused("NotAllowed", STRANGER.address):
        world.create_by(SESSION, world.quote(provider=STRANGER.address), signer=STRANGER, providers=listed)
    world.create_by(SESSION, providers=listed)
    world.create_by(SESSION, world.quote(provider=OTHER_PROVIDER.address), signer=OTHER_PROVIDER, key=b"\x02" * 32,
                    providers=listed)


def test_with_anyone_where_there_is_no_list(world: World) -> None:
    world.open_budget()
    world.create_by(SESSION, providers=(STRANGER.address,))


def test_the_rules_of_create_hold(world: World) -> None:
    world.open_budget()
    quote = world.quote()
    with refused("AboveMaximum", 400_000, 399_999):
        world.create_by(SESSION, quote, at_most=399_999)
    with refused("BadSignature", PROVIDER.address):
        world.create_by(SESSION, quote, signer=STRANGER)
    with refused("BadSeconds", 59, 60, 36_000):
        world.create_by(SESSION, quote, seconds=59)
    id = world.create_by(SESSION, quote)
    with refused("RentalExists", id):
        world.create_by(SESSION)
    with refused("QuoteSpent"):
        world.create_by(SESSION, quote, key=b"\x02" * 32)


@pytest.mark.parametrize(("wait", "fine"), [(-1, True), (0, False), (1, False)])
def test_until_its_end(world: World, wait: int, fine: bool) -> None:
    terms = world.open_budget(world.terms(expiry=world.chain.now + 3000))
    id = running(world)
    world.chain.warp(terms.expiry + wait)

    def spend() -> None:
        world.create_by(SESSION, key=b"\x02" * 32)
        world.escrow.send(SESSION.address, "extendTo", id, 7200, CAP)

    if fine:
        return spend()
    with refused("TooLate", terms.expiry, world.chain.now):
        world.create_by(SESSION, key=b"\x02" * 32)
    with refused("TooLate", terms.expiry, world.chain.now):
        world.escrow.send(SESSION.address, "extendTo", id, 7200, CAP)


def test_the_session_extends_from_the_budget_and_the_owner_from_its_wallet(world: World) -> None:
    world.open_budget()
    id = running(world)
    world.escrow.send(SESSION.address, "extendTo", id, 7200, 400_000)
    assert (budget(world).left, world.balance(RENTER.address)) == (CAP - 800_000, PURSE - CAP)
    world.escrow.send(RENTER.address, "extendTo", id, 10_800, 400_000)
    assert (budget(world).left, world.balance(RENTER.address)) == (CAP - 800_000, PURSE - CAP - 400_000)
    with refused("AboveMaximum", 2_400_000, CAP - 800_000):
        world.escrow.send(SESSION.address, "extendTo", id, 32_400, PURSE)


# ---- acting for the owner -------------------------------------------------------------------------------


def test_no_other_key_is_the_session(world: World) -> None:
    world.open_budget()
    id = running(world)
    for call in (("end", id, REPORT), ("reject", id, 3, REPORT), ("extendTo", id, 7200, PURSE)):
        with refused("NotAllowed", STRANGER.address):
            world.escrow.send(STRANGER.address, *call)


def test_the_session_cancels_rejects_and_ends_what_it_opened(world: World) -> None:
    world.open_budget()
    ways: tuple[tuple[str, tuple[Any, ...]], ...] = (("cancel", ()), ("reject", (3, REPORT)), ("end", (REPORT,)))
    for n, (function, rest) in enumerate(ways, 1):
        id = (world.create_by if function == "cancel" else lambda _, **how: running(world, **how))(
            SESSION, key=bytes([n]) * 32)
        home = world.balance(RENTER.address)
        world.escrow.send(SESSION.address, function, id, *rest)
        assert world.rental(id).closedBy == model.BY_RENTER
        assert world.balance(RENTER.address) == home + 400_000
        assert world.balance(SESSION.address) == 0


def test_the_sessions_signature_ends_too(world: World) -> None:
    world.open_budget()
    id, own = running(world), world.active(key=b"\x02" * 32)
    for which, signer, fine in ((id, SESSION, True), (own, SESSION, False), (own, RENTER, True)):
        signature = signer.sign(world.end_digest(which, REPORT))
        if fine:
            world.escrow.send(STRANGER.address, "endSigned", which, REPORT, signature)
            assert (world.rental(which).closedBy, world.rental(which).reportDigest) == (model.BY_RENTER, REPORT)
        else:
            with refused("BadSignature", RENTER.address):
                world.escrow.send(STRANGER.address, "endSigned", which, REPORT, signature)


_POWERS: tuple[tuple[str, tuple[Any, ...]], ...] = (
    ("reject", (1, REPORT)), ("end", (REPORT,)), ("extendTo", (7200, PURSE)))


@pytest.mark.parametrize(("function", "rest"), _POWERS)
def test_what_the_owner_opened_itself_is_not_the_sessions(world: World, function: str, rest: Any) -> None:
    world.open_budget()
    id = world.active()
    with refused("NotAllowed", SESSION.address):
        world.escrow.send(SESSION.address, function, id, *rest)


@pytest.mark.parametrize("how", ["closed", "over"])
def test_it_still_ends_when_the_budget_is_no_more(world: World, how: str) -> None:
    terms = world.open_budget(world.terms(expiry=world.chain.now + 1000))
    id = running(world)
    if how == "closed":
        world.escrow.send(RENTER.address, "closeBudget", RENTER.address)
    else:
        world.chain.warp(terms.expiry + 1)
    with refused("TooLate"):
        world.escrow.send(SESSION.address, "extendTo", id, 3601, PURSE)
    world.escrow.send(SESSION.address, "end", id, REPORT)


@pytest.mark.parametrize(("function", "rest"), _POWERS)
def test_a_later_budgets_session_has_no_power_over_earlier_rentals(world: World, function: str, rest: Any) -> None:
    world.open_budget()
    id = running(world)
    world.escrow.send(SESSION.address, "closeBudget", RENTER.address)
    second = person("second session")
    world.open_budget(world.terms(session=second.address))
    for caller in (second, SESSION):
        with refused("NotAllowed", caller.address):
            world.escrow.send(caller.address, function, id, *rest)
    world.escrow.send(RENTER.address, "end", id, REPORT)


# ---- closing --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("caller", [RENTER, SESSION], ids=lambda p: p.name)
def test_what_is_left_goes_home(world: World, caller: Person) -> None:
    world.open_budget()
    world.create_by(SESSION)
    world.escrow.send(caller.address, "closeBudget", RENTER.address)
    assert world.escrow.events() == [
        ("BudgetClosed", {"owner": RENTER.address, "number": 1, "left": CAP - 400_000})]
    assert world.balance(RENTER.address) == PURSE - 400_000
    assert (budget(world).left, budget(world).expiry, world.escrow.read("held")) == (0, 0, 400_000)
    with refused("NoBudget", RENTER.address):
        world.escrow.send(caller.address, "closeBudget", RENTER.address)
    with refused("TooLate"):
        world.create_by(SESSION, key=b"\x02" * 32)


@pytest.mark.parametrize(("wait", "fine"), [(-1, False), (0, True), (1, True)])
def test_anyone_sends_it_home_once_it_is_over(world: World, wait: int, fine: bool) -> None:
    terms = world.open_budget()
    world.chain.warp(terms.expiry + wait)
    if fine:
        world.escrow.send(STRANGER.address, "closeBudget", RENTER.address)
        assert world.balance(RENTER.address) == PURSE
    else:
        with refused("NotAllowed", STRANGER.address):
            world.escrow.send(STRANGER.address, "closeBudget", RENTER.address)


@pytest.mark.parametrize("trouble", ["paused", "owner"])
def test_what_cannot_be_pushed_waits_as_a_credit(world: World, trouble: str) -> None:
    world.open_budget()

    def make(yes: bool) -> None:
        world.pause(yes) if trouble == "paused" else world.blacklist(RENTER.address, yes)

    make(True)
    world.escrow.send(SESSION.address, "closeBudget", RENTER.address)
    assert ("Credited", {"owner": RENTER.address, "id": NOTHING, "amount": CAP}) in world.escrow.events()
    assert (world.escrow.read("held"), world.escrow.read("credits")) == (0, CAP)
    make(False)
    world.escrow.send(RENTER.address, "withdraw")
    assert world.balance(RENTER.address) == PURSE


def test_nobody_has_a_budget_that_was_never_opened(world: World) -> None:
    assert (budget(world, STRANGER).session, budget(world, STRANGER).number) == (ZERO, 0)
    with refused("NoBudget", STRANGER.address):
        world.escrow.send(STRANGER.address, "closeBudget", STRANGER.address)
    with refused("NotAllowed"):
        world.create_by(SESSION, world.quote())
