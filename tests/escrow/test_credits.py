"""withdraw, and closing while the token is paused, blacklists somebody or is simply odd."""
from __future__ import annotations

import pytest

from . import doubles
from .chain import Chain
from .doubles import Token
from .model import CLOSED
from .world import FEE_TAKER, PROVIDER, PURSE, RENTER, STRANGER, ZERO, World, refused

pytestmark = pytest.mark.money
REPORT = b"\xfe" * 32
PAY = 400_000 * 1000 // 3600


def ended(world: World, fee: int = 0) -> bytes:
    id = world.active(world.quote(feeBps=fee, feeRecipient=FEE_TAKER.address if fee else ZERO))
    world.after(1000)
    world.escrow.send(RENTER.address, "end", id, REPORT)
    return id


# ---- withdrawal -----------------------------------------------------------------------------------------


def test_a_credit_is_paid_once(world: World) -> None:
    ended(world)
    assert [name for name, _ in world.escrow.events()] == ["RentalClosed"]
    assert world.escrow.send(PROVIDER.address, "withdraw") == PAY
    assert world.escrow.events() == [("Withdrawn", {"owner": PROVIDER.address, "amount": PAY})]
    assert world.balance(PROVIDER.address) == PAY
    assert (world.escrow.read("creditOf", PROVIDER.address), world.escrow.read("credits")) == (0, 0)
    with refused("NothingToWithdraw", PROVIDER.address):
        world.escrow.send(PROVIDER.address, "withdraw")


def test_anyone_may_ask_and_only_the_owner_is_paid(world: World) -> None:
    ended(world, fee=1000)
    assert world.escrow.send(STRANGER.address, "withdrawFor", FEE_TAKER.address) == PAY // 10
    assert world.balance(FEE_TAKER.address) == PAY // 10
    assert world.balance(STRANGER.address) == 0
    with refused("NothingToWithdraw", STRANGER.address):
        world.escrow.send(STRANGER.address, "withdraw")


def test_credits_add_up(world: World) -> None:
    for key in (b"\x01" * 32, b"\x02" * 32):
        id = world.active(key=key)
        world.after(1000)
        world.escrow.send(RENTER.address, "end", id, REPORT)
    assert world.escrow.read("creditOf", PROVIDER.address) == world.escrow.read("credits") == 2 * PAY


def test_nobody_withdraws_what_is_held(world: World) -> None:
    world.active()
    for who in (RENTER, PROVIDER, STRANGER):
        with refused("NothingToWithdraw", who.address):
            world.escrow.send(who.address, "withdraw")


# ---- Circle's token says no -----------------------------------------------------------------------------


@pytest.mark.parametrize("trouble", ["paused", "renter", "escrow"])
def test_a_refund_that_cannot_be_pushed_waits_as_a_credit(world: World, trouble: str) -> None:
    id = world.active()
    world.after(1000)

    def make(yes: bool) -> None:
        if trouble == "paused":
            return world.pause(yes)
        return world.blacklist(RENTER.address if trouble == "renter" else world.escrow.address, yes)

    make(True)
    world.escrow.send(RENTER.address, "end", id, REPORT)
    refund = 400_000 - PAY
    assert ("Credited", {"owner": RENTER.address, "id": id, "amount": refund}) in world.escrow.events()
    r = world.rental(id)
    assert (r.state, r.refunded, world.escrow.read("creditOf", RENTER.address)) == (CLOSED, refund, refund)
    assert world.escrow.read("credits") == 400_000
    with refused("TransferFailed", RENTER.address, refund):
        world.escrow.send(RENTER.address, "withdraw")
    make(False)
    assert world.escrow.send(RENTER.address, "withdraw") == refund
    assert world.balance(RENTER.address) == PURSE - PAY


def test_no_refund_is_no_credit(world: World) -> None:
    id = world.active()
    world.after(3600)
    world.pause()
    world.escrow.send(STRANGER.address, "settle", id)
    assert [name for name, _ in world.escrow.events()] == ["RentalClosed"]
    r = world.rental(id)
    assert (r.paid, r.refunded, world.escrow.read("creditOf", RENTER.address)) == (400_000, 0, 0)


def test_a_blacklisted_provider_holds_up_nobody_else(world: World) -> None:
    id = world.active(world.quote(feeBps=1000, feeRecipient=FEE_TAKER.address))
    world.blacklist(PROVIDER.address)
    world.after(1000)
    world.escrow.send(PROVIDER.address, "end", id, REPORT)
    assert world.balance(RENTER.address) == PURSE - PAY
    world.escrow.send(FEE_TAKER.address, "withdraw")
    with refused("TransferFailed"):
        world.escrow.send(PROVIDER.address, "withdraw")
    world.blacklist(PROVIDER.address, False)
    world.escrow.send(PROVIDER.address, "withdraw")
    assert world.balance(PROVIDER.address) == PAY - PAY // 10
    assert world.balance(world.escrow.address) == 0


def test_what_is_owed_can_always_be_counted(world: World) -> None:
    """Deposits so large that a sum would overflow are refused on the way in, so closing never meets one."""
    longest = 2**32 - 1
    most = -(-(2**96 - 1) * longest // 3600)
    room = (2**120 - 1) // most

    def dear(key: int) -> bytes:
        quote = world.quote(pricePerHour=2**96 - 1, maxSeconds=longest)
        return world.active(quote, key=key.to_bytes(32, "big"), seconds=longest)

    ids = [dear(key) for key in range(room)]
    with refused("Panic", 0x11):
        dear(room)
    world.pause()
    world.after(longest)
    world.escrow.send(STRANGER.address, "settle", ids[0])
    world.pause(False)
    assert world.escrow.read("held") == (room - 1) * most
    with refused("BadDeposit", (room + 1) * most, (room + 1) * most):
        dear(room)
    for id in ids[1:]:
        world.escrow.send(STRANGER.address, "settle", id)
    assert world.escrow.send(PROVIDER.address, "withdraw") == room * ((2**96 - 1) * longest // 3600)


# ---- tokens that Circle's is not ------------------------------------------------------------------------


@pytest.fixture
def odd() -> World:
    """An escrow of a token that can misbehave; the renter has some."""
    chain = Chain()
    token = doubles.deploy(chain, "OddToken")
    token.send(STRANGER.address, "mint", RENTER.address, PURSE)
    return World(token)


def behave(world: World, habit: Token) -> None:
    world.token.send(STRANGER.address, "behave", habit)


@pytest.mark.parametrize(("habit", "error"), [
    (Token.TAKES_FEE, "BadDeposit"), (Token.RETURNS_FALSE, "TransferFailed"), (Token.REVERTS, "Error")])
def test_a_payment_that_is_not_one_opens_and_extends_nothing(odd: World, habit: Token, error: str) -> None:
    running = odd.active()
    behave(odd, habit)
    with refused(error):
        odd.create(key=b"\x02" * 32)
    with refused(error):
        odd.escrow.send(RENTER.address, "extendTo", running, 7200, PURSE)
    assert odd.rental(running).fundedSeconds == 3600
    assert odd.escrow.read("held") == 400_000


@pytest.mark.parametrize("habit", [Token.RETURNS_FALSE, Token.REVERTS, Token.BURNS_GAS])
def test_a_push_that_fails_is_a_credit_however_it_fails(odd: World, habit: Token) -> None:
    id = odd.active()
    behave(odd, habit)
    odd.escrow.send(RENTER.address, "reject", id, 1, REPORT, gas=30_000_000)
    assert odd.escrow.read("creditOf", RENTER.address) == odd.rental(id).refunded
    behave(odd, Token.NONE)
    assert odd.escrow.send(RENTER.address, "withdraw") == 400_000


@pytest.mark.parametrize("habit", [Token.RETURNS_NOTHING, Token.RETURNS_TWO])
def test_an_answer_that_means_nothing_is_no_yes(odd: World, habit: Token) -> None:
    """Outside the stated assumptions: such a token has moved already. Booked as not moved, and nothing reverts."""
    id = odd.active()
    behave(odd, habit)
    odd.escrow.send(RENTER.address, "reject", id, 1, REPORT)
    assert (odd.rental(id).state, odd.escrow.read("creditOf", RENTER.address)) == (CLOSED, 400_000)


@pytest.mark.parametrize("gas", range(90_000, 330_000, 10_000))
def test_starving_the_push_of_gas_does_not_make_a_credit(world: World, gas: int) -> None:
    id = world.active()
    world.after(4000)
    try:
        world.escrow.send(STRANGER.address, "settle", id, gas=gas)
    except RuntimeError as error:
        assert "OutOfGas" in str(error)
    assert world.escrow.read("creditOf", RENTER.address) == 0


@pytest.mark.parametrize("errand", [
    "create", "activate", "cancelQuote", "cancel", "reject", "extendTo", "end", "endSigned", "settle", "withdraw",
    "withdrawFor", "openBudget", "closeBudget", "createFromBudget"])
@pytest.mark.parametrize("during", ["create", "extendTo", "reject", "withdraw"])
def test_no_way_back_in(odd: World, errand: str, during: str) -> None:
    running, credited = odd.active(), odd.active(key=b"\x02" * 32)
    odd.after(901)
    odd.escrow.send(PROVIDER.address, "end", credited, REPORT)
    odd.chain.warp(odd.rental(running).startedAt)
    quote = odd.quote().tuple()
    arguments = {"create": (b"\x05" * 32, quote, b"", 60, 0, REPORT), "activate": (running, REPORT),
                 "cancelQuote": (quote,), "cancel": (running,), "reject": (running, 0, REPORT),
                 "extendTo": (running, 7200, PURSE), "end": (running, REPORT), "endSigned": (running, REPORT, b""),
                 "settle": (running,), "withdraw": (), "withdrawFor": (PROVIDER.address,),
                 "openBudget": (odd.terms().tuple(), b""), "closeBudget": (RENTER.address,),
                 "createFromBudget": (b"\x05" * 32, quote, b"", 60, 0, REPORT, ())}[errand]
    odd.token.send(STRANGER.address, "callBack", odd.escrow.address, odd.escrow.encode(errand, *arguments))
    if during == "create":
        odd.create(key=b"\x03" * 32)
    else:
        call = {"extendTo": (running, 7200, PURSE), "reject": (running, 0, REPORT), "withdraw": ()}[during]
        odd.escrow.send((PROVIDER if during == "withdraw" else RENTER).address, during, *call)
    assert odd.token.read("errandDone") is False
    assert odd.escrow.explain(odd.token.read("errandAnswer")).name == "Reentered"


def test_the_guard_opens_again_within_a_transaction(world: World) -> None:
    ended(world, fee=1000)
    wallet = doubles.deploy(world.chain, "Wallet")
    calls = [world.escrow.encode("withdrawFor", who.address) for who in (PROVIDER, FEE_TAKER)]
    wallet.send(STRANGER.address, "act", world.escrow.address, calls)
    assert world.escrow.read("credits") == 0
