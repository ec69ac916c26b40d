"""Which token is the real one where, how much may be put at stake, and what a person is told to buy."""
from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.chain import create2, funding, networks
from orchestrator.chain.funds import Funds, target
from orchestrator.chain.networks import AMOY, LAB, POLYGON, Limit
from orchestrator.domain.escrow import EscrowFacts
from orchestrator.domain.money import POL, USDC, Money
from orchestrator.errors import BadInput, NoFunds, Refused

pytestmark = pytest.mark.money
WHO = "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed"


def usdc(text: str) -> Money:
    return Money.parse(f"{text} USDC", USDC)


def pol(text: str) -> Money:
    return Money.parse(f"{text} POL", POL)


@pytest.mark.parametrize(("chain_id", "token", "words"), [
    (137, POLYGON.bridged, "is USDC.e, a bridged one; Polygon has its own USDC"),
    (137, AMOY.usdc, "is not the USDC of Polygon"),
    (80002, POLYGON.usdc, "is not the USDC of Polygon Amoy"),
    (1, POLYGON.usdc, "chain 1 is none that sealtune knows"),
])
def test_tokens_that_only_look_like_it(chain_id: int, token: str, words: str) -> None:
    for written in (token, token.lower()):
        with pytest.raises(Refused, match=words):
            networks.must_be_usdc(EscrowFacts(chain_id, WHO, written))


def test_the_real_ones() -> None:
    for network in (AMOY, POLYGON):
        networks.must_be_usdc(EscrowFacts(network.chain_id, WHO, network.usdc.lower()))
        assert target(network.usdc, {}) == network.usdc
    networks.must_be_usdc(EscrowFacts(LAB.chain_id, WHO, WHO))
    assert target(POLYGON.bridged, {}) == POLYGON.bridged
    assert (POLYGON.real, AMOY.real, LAB.real) == (True, False, False)


def test_real_money_is_opted_into_and_limited() -> None:
    with pytest.raises(NoFunds, match="has not been audited") as no:
        Limit(usdc("50"), False).check(1)
    assert "accept_unaudited: true" in str(no.value.hint)
    Limit(usdc("50"), True).check(50_000_000)
    with pytest.raises(NoFunds, match=r"50\.000001 USDC is above the limit of 50\.00 USDC"):
        Limit(usdc("50"), True).check(50_000_001)


def test_the_address_follows_from_the_token() -> None:
    on_polygon, on_amoy = create2.address(POLYGON.usdc), create2.address(AMOY.usdc)
    assert on_polygon != on_amoy and create2.address(POLYGON.usdc.lower()) == on_polygon


@pytest.mark.parametrize(("text", "words"), [
    ("", "no address"), ("0x12", "no address"), ("5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed", "no address"),
    (WHO + " ", "no address"), (WHO.replace("5aA", "5AA"), "typing error"), ("0x" + "00" * 20, "is nobody"),
    ("0x" + "ab" * 20, "is the escrow"), ("0x" + "AB" * 20, "is the escrow"),
])
def test_where_money_does_not_go(text: str, words: str) -> None:
    with pytest.raises(BadInput, match=words):
        target(text, {"0x" + "00" * 20: "nobody", "0x" + "ab" * 20: "the escrow", "": "nothing"})


def test_where_it_goes() -> None:
    assert target(WHO, {}) == target(WHO.lower(), {}) == target("0x" + WHO[2:].upper(), {}) == WHO


EMPTY = Funds(WHO, WHO, POLYGON, usdc("0"), pol("0"), usdc("0"), False, False, (), usdc("0"), usdc("0"))


def test_what_to_send_is_rounded_up_to_what_one_can_buy() -> None:
    wanted = funding.need(usdc("7.999999"), pol("0.0031669240008"))
    assert wanted == funding.Need(usdc("8"), pol("0.01"))
    some = replace(EMPTY, usdc=usdc("2.995"), coin=pol("0.01"))
    assert funding.missing(wanted, some) == funding.Need(usdc("5.01"), pol("0"))
    assert funding.missing(wanted, replace(EMPTY, usdc=usdc("900"))).usdc.units == 0


def test_the_page_for_a_person_without_crypto_habits() -> None:
    wanted = funding.Need(usdc("8"), pol("0.1"))
    page = "\n".join(funding.advice(wanted, EMPTY))
    for words in (WHO, "Polygon (chain id 137)", "8.00 USDC", "0.10 POL", POLYGON.usdc, "not USDC.e", "MetaMask",
                  "sealtune wallet show", "sweep"):
        assert words in page, words
    assert POLYGON.bridged not in page
    enough = "\n".join(funding.advice(wanted, replace(EMPTY, usdc=usdc("8"), coin=pol("1"))))
    assert "nothing needs to be sent" in enough and "MetaMask" not in enough
    only_gas = "\n".join(funding.advice(wanted, replace(EMPTY, usdc=usdc("9"))))
    assert "0.10 POL   the network's own coin" in only_gas and "the dollar token" not in only_gas
    assert "faucet" in "\n".join(funding.advice(wanted, replace(EMPTY, network=AMOY)))
    assert "--give" in "\n".join(funding.advice(wanted, replace(EMPTY, network=LAB)))


def test_the_page_warns() -> None:
    odd = replace(EMPTY, bridged=usdc("12"), paused=True, blacklisted=True)
    page = "\n".join(funding.advice(funding.Need(usdc("8"), pol("0.1")), odd))
    for words in ("12.00 USDC of what is here are USDC.e", "paused by its issuer", "blocked this account"):
        assert words in page
