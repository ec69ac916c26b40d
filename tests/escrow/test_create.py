"""create: who may, with which quote, for how much; and what is stored."""
from __future__ import annotations

from typing import Any

import pytest
from eth_account import Account
from eth_account.messages import encode_typed_data
from eth_utils.crypto import keccak

from . import doubles
from .chain import CHAIN_ID, Chain
from .model import FUNDED, price_ahead
from .world import (
    FEE_TAKER,
    NOTHING,
    OTHER_PROVIDER,
    OTHER_RENTER,
    PROVIDER,
    PURSE,
    QUOTE_TYPE,
    RENTER,
    STRANGER,
    ZERO,
    World,
    escrow_artefact,
    refused,
)

pytestmark = pytest.mark.money
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


def test_the_deposit_moves_and_everything_is_stored(world: World) -> None:
    quote = world.quote(feeBps=250, feeRecipient=FEE_TAKER.address, pricePerHour=123_457)
    id = world.create(quote, seconds=601)
    ((name, event),) = world.escrow.events()
    r = world.rental(id)
    deposit = -(-123_457 * 601 // 3600)
    assert (r.state, r.deposit, r.fundedSeconds, r.key) == (FUNDED, deposit, 601, b"\x01" * 32)
    assert (r.renter, r.provider) == (RENTER.address, PROVIDER.address)
    assert (r.feeRecipient, r.feeBps) == (FEE_TAKER.address, 250)
    assert (r.createdAt, r.startBy) == (world.chain.now, world.chain.now + 600)
    assert (r.accessHash, r.budget) == (b"\xac" * 32, 0)
    assert world.balance(world.escrow.address) == world.escrow.read("held") == deposit
    assert world.balance(RENTER.address) == PURSE - deposit
    assert name == "RentalFunded"
    assert event == {
        "id": id, "renter": RENTER.address, "provider": PROVIDER.address, "key": b"\x01" * 32,
        "quoteDigest": world.digest(quote), "offerId": quote.offerId, "specHash": quote.specHash,
        "accessHash": b"\xac" * 32, "deposit": deposit, "fundedSeconds": 601, "startBy": r.startBy}


def test_the_id_is_known_before(world: World) -> None:
    wanted = world.id_of(RENTER.address, b"\x07" * 32)
    assert world.escrow.read("rentalId", RENTER.address, b"\x07" * 32) == wanted
    assert world.create(key=b"\x07" * 32) == wanted


def test_eth_account_and_the_contract_agree_on_the_digest(world: World) -> None:
    quote = world.quote(feeBps=1, feeRecipient=FEE_TAKER.address)
    fields = [f.rsplit(" ", 1) for f in QUOTE_TYPE[6:-1].split(",")]
    signable = encode_typed_data(
        {"name": "sealtune RentalEscrow", "version": "1", "chainId": CHAIN_ID,
         "verifyingContract": world.escrow.address},
        {"Quote": [{"type": kind, "name": name} for kind, name in fields]},
        {name: getattr(quote, name) for _, name in fields})
    digest = keccak(b"\x19" + signable.version + signable.header + signable.body)
    assert world.escrow.read("quoteDigest", quote.tuple()) == digest == world.digest(quote)
    assert world.escrow.read("DOMAIN_SEPARATOR") == signable.header
    signed = Account.sign_message(signable, PROVIDER.key)
    world.create(quote, signature=bytes(signed.signature))


# ---- only once ------------------------------------------------------------------------------------------


def test_a_repeated_create_costs_nothing(world: World) -> None:
    quote = world.quote()
    id = world.create(quote)
    with refused("RentalExists", id):
        world.create(quote)
    with refused("RentalExists", id):
        world.create(world.quote())
    assert world.balance(world.escrow.address) == world.rental(id).deposit


def test_a_key_stays_taken_after_closing(world: World) -> None:
    id = world.create()
    world.escrow.send(RENTER.address, "cancel", id)
    with refused("RentalExists", id):
        world.create()


def test_another_renter_has_the_same_key_for_itself(world: World) -> None:
    first = world.create()
    assert first != world.create(world.quote(renter=OTHER_RENTER.address))


def test_a_quote_is_used_once(world: World) -> None:
    quote = world.quote()
    world.create(quote)
    assert world.escrow.read("quoteSpent", quote.provider, quote.salt)
    assert not world.escrow.read("quoteSpent", OTHER_PROVIDER.address, quote.salt)
    with refused("QuoteSpent", world.digest(quote)):
        world.create(quote, key=b"\x02" * 32)


@pytest.mark.parametrize("other", [0, 254, 256, 2**255])
def test_a_salt_is_used_once_and_no_other_with_it(world: World, other: int) -> None:
    world.create(world.quote(salt=(255).to_bytes(32, "big")))
    world.create(world.quote(salt=other.to_bytes(32, "big")), key=b"\x02" * 32)
    with refused("QuoteSpent"):
        world.create(world.quote(salt=(255).to_bytes(32, "big"), pricePerHour=1), key=b"\x03" * 32)


def test_a_cancelled_quote_is_not_used_at_all(world: World) -> None:
    quote = world.quote()
    with refused("NotAllowed", RENTER.address):
        world.escrow.send(RENTER.address, "cancelQuote", quote.tuple())
    world.escrow.send(PROVIDER.address, "cancelQuote", quote.tuple())
    wanted = {"provider": PROVIDER.address, "quoteDigest": world.digest(quote)}
    assert world.escrow.events() == [("QuoteCancelled", wanted)]
    with refused("QuoteSpent", world.digest(quote)):
        world.create(quote)
    with refused("QuoteSpent", world.digest(quote)):
        world.escrow.send(PROVIDER.address, "cancelQuote", quote.tuple())


# ---- bounds ---------------------------------------------------------------------------------------------


def test_only_the_renter_of_the_quote(world: World) -> None:
    with refused("NotAllowed", OTHER_RENTER.address):
        world.create(sender=OTHER_RENTER.address)


def test_a_quote_is_good_until_its_last_second(world: World) -> None:
    quote, late = world.quote(validUntil=world.chain.now + 10), world.quote(validUntil=world.chain.now + 9)
    world.after(10)
    world.create(quote)
    with refused("TooLate", late.validUntil, world.chain.now):
        world.create(late, key=b"\x02" * 32)


@pytest.mark.parametrize(("seconds", "fine"), [(59, False), (60, True), (120, True), (121, False)])
def test_the_seconds_are_within_the_quote(world: World, seconds: int, fine: bool) -> None:
    quote = world.quote(minSeconds=60, maxSeconds=120)
    if fine:
        world.create(quote, seconds=seconds)
    else:
        with refused("BadSeconds", seconds, 60, 120):
            world.create(quote, seconds=seconds)


def test_nothing_is_rented_for_no_time(world: World) -> None:
    with refused("BadSeconds", 0, 1, 120):
        world.create(world.quote(minSeconds=0, maxSeconds=120), seconds=0)
    world.create(world.quote(minSeconds=0, maxSeconds=120), seconds=1)


def test_never_more_than_the_renter_allowed(world: World) -> None:
    quote = world.quote(pricePerHour=123_457)
    deposit = price_ahead(123_457, 601)
    with refused("AboveMaximum", deposit, deposit - 1):
        world.create(quote, seconds=601, at_most=deposit - 1)
    world.create(quote, seconds=601, at_most=deposit)


def test_the_fee_is_capped_and_has_a_taker(world: World) -> None:
    with refused("BadFee", 1501, FEE_TAKER.address):
        world.create(world.quote(feeBps=1501, feeRecipient=FEE_TAKER.address))
    with refused("BadFee", 1, ZERO):
        world.create(world.quote(feeBps=1))
    world.create(world.quote(feeBps=1500, feeRecipient=FEE_TAKER.address))


@pytest.mark.parametrize(("price", "seconds"), [(0, 60), (1, 1), (1, 3600), (1, 3601), (2**96 - 1, 2**32 - 1)])
def test_the_deposit_rounds_up_and_never_overflows(world: World, price: int, seconds: int) -> None:
    quote = world.quote(pricePerHour=price, minSeconds=0, maxSeconds=2**32 - 1)
    assert world.rental(world.create(quote, seconds=seconds)).deposit == price_ahead(price, seconds)


def test_the_tokens_own_refusals_come_through(world: World) -> None:
    with refused("Error", "ERC20: transfer amount exceeds allowance"):
        world.create(world.quote(renter=STRANGER.address))
    world.blacklist(RENTER.address)
    with refused("Error", "Blacklistable: account is blacklisted"):
        world.create()
    world.blacklist(RENTER.address, False)
    world.pause()
    with refused("Error", "Pausable: paused"):
        world.create()
    assert world.escrow.read("held") == 0
    assert world.escrow.read("openRentals", RENTER.address, False, 0, 9) == ((), 0)


# ---- signatures -----------------------------------------------------------------------------------------

_CHANGES: dict[str, Any] = {
    "provider": OTHER_PROVIDER.address, "offerId": b"\x01" * 32, "specHash": b"\x01" * 32, "pricePerHour": 1,
    "feeBps": 1, "feeRecipient": FEE_TAKER.address, "minSeconds": 61, "maxSeconds": 35_999, "startWindow": 601,
    "inspectionSeconds": 901, "validUntil": 2**64 - 1, "salt": b"\x99" * 32}


@pytest.mark.parametrize("field", _CHANGES)
def test_no_field_of_a_signed_quote_can_be_changed(world: World, field: str) -> None:
    quote = world.quote(feeRecipient=STRANGER.address)
    changed = quote.but(**{field: _CHANGES[field]})
    with refused("BadSignature", changed.provider):
        world.create(changed, signature=PROVIDER.sign(world.digest(quote)))


def test_a_quote_for_one_renter_is_not_anothers(world: World) -> None:
    quote = world.quote()
    with refused("BadSignature", PROVIDER.address):
        world.create(quote.but(renter=OTHER_RENTER.address), signature=PROVIDER.sign(world.digest(quote)))


def test_a_quote_for_another_escrow_is_not_ours(world: World) -> None:
    quote = world.quote()
    other = World(world.token)
    with refused("BadSignature", PROVIDER.address):
        world.create(quote, signature=PROVIDER.sign(other.digest(quote)))


def test_a_quote_for_another_chain_is_not_ours(world: World) -> None:
    """Not even where token and escrow have the same addresses there."""
    elsewhere = World(chain=Chain(CHAIN_ID + 1))
    assert elsewhere.escrow.address == world.escrow.address
    with refused("BadSignature", PROVIDER.address):
        elsewhere.create(signature=PROVIDER.sign(world.digest(world.quote())))
    assert elsewhere.escrow.read("rentalId", RENTER.address, NOTHING) != world.id_of(RENTER.address, NOTHING)


def _spoilt(good: bytes) -> dict[str, bytes]:
    s = int.from_bytes(good[32:64], "big")
    return {
        "empty": b"", "short": good[:64], "long": good + b"\0", "v 0": good[:64] + bytes([good[64] - 27]),
        "v 29": good[:64] + b"\x1d", "zeros": bytes(65), "r 0": NOTHING + good[32:],
        "twin": good[:32] + (ORDER - s).to_bytes(32, "big") + bytes([55 - good[64]])}


@pytest.mark.parametrize("how", _spoilt(bytes(64) + b"\x1b"))
def test_malformed_signatures_are_refused(world: World, how: str) -> None:
    quote = world.quote()
    good = PROVIDER.sign(world.digest(quote))
    with refused("BadSignature", PROVIDER.address):
        world.create(quote, signature=_spoilt(good)[how])
    world.create(quote, signature=good)


def test_nobody_signs_for_the_zero_address(world: World) -> None:
    quote = world.quote(provider=ZERO)
    for signature in _spoilt(PROVIDER.sign(world.digest(quote))).values():
        with refused("BadSignature", ZERO):
            world.create(quote, signature=signature)


def test_a_contract_may_be_the_provider(world: World) -> None:
    wallet = doubles.deploy(world.chain, "Wallet")
    quote = world.quote(provider=wallet.address)
    with refused("BadSignature", wallet.address):
        world.create(quote, signature=b"whatever")
    wallet.send(STRANGER.address, "approve", world.digest(quote))
    for habit in set(doubles.Wallet) - {doubles.Wallet.SIGNS}:
        wallet.send(STRANGER.address, "behave", habit)
        with refused("BadSignature", wallet.address):
            world.create(quote, signature=b"whatever")
    wallet.send(STRANGER.address, "behave", doubles.Wallet.SIGNS)
    world.create(quote, signature=b"whatever")


def test_an_account_that_delegates_its_code_still_signs_with_its_key(world: World) -> None:
    world.chain.put_code(PROVIDER.address, b"\x00")
    with refused("BadSignature", PROVIDER.address):
        world.create(signer=STRANGER)
    world.create()


# ---- the escrow itself ----------------------------------------------------------------------------------


def test_an_escrow_of_no_token_is_not_deployed(world: World) -> None:
    for address in (ZERO, STRANGER.address):
        with pytest.raises(RuntimeError, match="Revert"):
            world.chain.deploy(STRANGER.address, escrow_artefact().bytecode + bytes(12) + bytes.fromhex(address[2:]))
