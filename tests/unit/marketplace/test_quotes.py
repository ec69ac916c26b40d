"""What a provider might slip into an offer, a quote or a clock, and what comes of it."""
from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.escrow import Quote
from orchestrator.domain.lease import Offer, Terms
from orchestrator.domain.money import USDC, Money
from orchestrator.domain.names import LeaseKey
from orchestrator.errors import OfferGone
from orchestrator.marketplace.open_market.checks import check_quote, offer_of, seconds_to_fund
from orchestrator.marketplace.open_market.times import ChainTime
from orchestrator.marketplace.open_market.wire import (
    OfferAnswer,
    QuoteAnswer,
    QuoteFields,
    QuoteOrder,
    access_hash,
    offer_hash,
    quote_fields,
    spec_hash,
)
from tests.fakes.open_market import RICH, SSH_KEY

pytestmark = pytest.mark.money
PROVIDER, RENTER = "0x" + "aA" * 20, "0x" + "bb" * 20
SPEC = {"gpu": "RTX 4090", "count": 1, "vram_mib": 24_564, "what": {"we": ["do not", "know"]}}
ANSWER = OfferAnswer(offer_id="one", provider=PROVIDER, spec=SPEC, price_per_hour="450000", fee_bps=100,
                     max_seconds=36_000, inspection_seconds=900)
TERMS = Terms(LeaseKey("1" * 64), SSH_KEY, 3600, RICH, 600)
ORDER = QuoteOrder(offer_id="one", renter=RENTER, seconds=3600, access_hash=access_hash(SSH_KEY))
QUOTE = Quote(PROVIDER.lower(), RENTER, offer_hash("one"), spec_hash(SPEC), 450_000, 100, "0x" + "fe" * 20, 60, 36_000,
              600, 900, 1_800_000_000, "0x" + "01" * 32)


def offer() -> Offer:
    found = offer_of("open", ANSWER, None)
    assert found is not None
    return found


def check(quote: Quote = QUOTE, spec: dict[str, Any] = SPEC) -> Quote:
    answer = QuoteAnswer(quote=QuoteFields.model_validate(quote_fields(quote)), signature="0x" + "ab" * 65, spec=spec)
    return check_quote(answer, offer(), ORDER, TERMS)


def test_a_quote_that_keeps_the_offers_word() -> None:
    assert check() == QUOTE
    better = replace(QUOTE, pricePerHour=1, feeBps=0, maxSeconds=72_000, inspectionSeconds=1800)
    assert check(better) == better


@pytest.mark.parametrize(("change", "says"), [
    ({"provider": "0x" + "cc" * 20}, "another provider"),
    ({"renter": "0x" + "cc" * 20}, "another renter"),
    ({"offerId": offer_hash("two")}, "another offer"),
    ({"specHash": spec_hash({})}, "does not bind"),
    ({"pricePerHour": 450_001}, "asks 450001 units per hour"),
    ({"feeBps": 101}, "fee of 101 bps"),
    ({"maxSeconds": 35_999}, "ends after 35999 s"),
    ({"startWindow": 29}, "leaves 29 s to start"),
    ({"inspectionSeconds": 599}, "leaves 599 s to inspect, 600 s are needed"),
])
def test_a_quote_that_does_not(change: dict[str, Any], says: str) -> None:
    with pytest.raises(OfferGone, match=says):
        check(replace(QUOTE, **change))


@pytest.mark.parametrize("spec", [{**SPEC, "vram_mib": 8192}, {**SPEC, "simulated": True}, {**SPEC, "count": 2}, {}])
def test_a_quote_for_other_hardware_though_well_bound(spec: dict[str, Any]) -> None:
    with pytest.raises(OfferGone, match="for other hardware"):
        check(replace(QUOTE, specHash=spec_hash(spec)), spec)


def test_an_unreadable_specification_is_no_offer() -> None:
    assert offer_of("open", ANSWER.model_copy(update={"spec": {"gpu": 1}}), None) is None


def test_text_of_an_offer_is_fit_for_a_terminal() -> None:
    dressed = offer_of("open", ANSWER.model_copy(update={"spec": {**SPEC, "gpu": "RTX\x1b]0;x\x07 4090"}}), None)
    assert dressed is not None and dressed.claim is not None and dressed.claim.gpu == "RTX?]0;x? 4090"


@settings(deadline=None)
@given(asked=st.integers(1, 10**6), least=st.integers(0, 10**6), most=st.integers(1, 10**6))
def test_what_is_funded_is_never_longer_than_the_quote(asked: int, least: int, most: int) -> None:
    assert 1 <= seconds_to_fund(replace(TERMS, seconds=asked), least, most) <= most


@settings(deadline=None)
@given(units=st.integers(0, 2**96 - 1))
def test_amounts_go_over_the_wire_unchanged(units: int) -> None:
    assert QuoteFields.model_validate(quote_fields(replace(QUOTE, pricePerHour=units))).quote().pricePerHour == units
    assert Money(units, USDC).units == units


@settings(deadline=None)
@given(lead=st.integers(-10**7, 10**7), then=st.integers(10**9, 2 * 10**9))
def test_a_deadline_is_at_most_five_seconds_late_and_comes_back_the_same(lead: int, then: int) -> None:
    time = ChainTime.read(1_800_000_000 + lead, 1_800_000_000)
    assert time.chain(time.ours(then)) == then
    true = then - lead
    assert time.ours(then) <= true + 5 or -60 <= lead < 0


@settings(deadline=None)
@given(lead=st.integers(-10**7, 10**7))
def test_resting_chains_and_jitter_do_not_move_a_target(lead: int) -> None:
    near = {ChainTime.read(10**9 + lead + jitter, 10**9).ahead for jitter in range(4)}
    assert len(near) <= 2
    assert all(ChainTime.read(10**9 - rest, 10**9).ahead == 0 for rest in (0, 1, 59, 60))
