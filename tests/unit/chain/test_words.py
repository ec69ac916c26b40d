"""Refusals in words, and bids: the pure parts."""
from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.chain import contracts, fees, refusals
from orchestrator.chain.fees import GWEI, Fees, policy_for
from orchestrator.chain.refusals import RentalExists, TooLate, WrongState, refusal
from orchestrator.errors import NoFunds, NothingMade, OfferGone

pytestmark = pytest.mark.money


def data(name: str, *values: object) -> str:
    from eth_abi.abi import encode

    selector, (_, kinds) = next((s, e) for s, e in refusals._selectors().items() if e[0] == name)
    return selector + encode(kinds, values).hex()


def test_every_error_of_the_contract_has_words() -> None:
    names = {e["name"] for e in contracts.load("RentalEscrow").abi if e["type"] == "error"}
    assert names == set(refusals._WORDS)


def test_in_words() -> None:
    cases = [
        (data("RentalExists", b"\x01" * 32), RentalExists, "exists already"),
        (data("WrongState", b"\x01" * 32, 3), WrongState, "is closed"),
        (data("TooLate", 1_796_000_000, 1_796_000_001), TooLate, "possible until 2026-11-30 00:53:20 UTC"),
        (data("TooLate", 2**255, 1), TooLate, "possible until 5789"),
        (data("QuoteSpent", b"\x01" * 32), OfferGone, "was used or taken back"),
        (data("BadSignature", "0x" + "01" * 20), OfferGone, "not signed by 0x0101"),
        (data("AboveMaximum", 5, 4), NothingMade, "it would cost 5 base units, 4 were allowed"),
        (data("BadFee", 1600, "0x" + "01" * 20), OfferGone, "16.00 %"),
    ]
    for given_, kind, words in cases:
        found = refusal(given_, "execution reverted")
        assert type(found) is kind and words in str(found)


def test_without_data_the_nodes_text_speaks() -> None:
    assert type(refusal("", "execution reverted: ERC20: transfer amount exceeds balance")) is NoFunds
    assert str(refusal("0x", "execution reverted")) == "the contract refuses: no reason given"
    assert "paused" in str(refusal("0x08c379a0", "execution reverted: Pausable: paused"))


@given(st.sampled_from(sorted(refusals._selectors())), st.binary(max_size=200))
def test_a_lying_node_does_not_break_us(selector: str, rest: bytes) -> None:
    assert isinstance(refusal(selector + rest.hex(), "text"), NothingMade)
    assert isinstance(refusal(selector + "zz", "text"), NothingMade)


class Node:
    def __init__(self, base: int, tips: list[int]) -> None:
        self._found = base, tips

    def tips(self, blocks: int) -> tuple[int, list[int]]:
        return self._found


def test_polygon_is_never_bid_below_its_floor() -> None:
    bid, _ = fees.today(Node(100 * GWEI, [GWEI]), policy_for(137))  # type: ignore[arg-type]
    assert bid == Fees(30 * GWEI, 230 * GWEI)
    bid, _ = fees.today(Node(100 * GWEI, [80 * GWEI, 60 * GWEI]), policy_for(80002))  # type: ignore[arg-type]
    assert bid == Fees(70 * GWEI, 270 * GWEI)
    bid, _ = fees.today(Node(100 * GWEI, [10**9 * GWEI]), policy_for(137))  # type: ignore[arg-type]
    assert bid == Fees(600 * GWEI, 800 * GWEI)           # whatever a node says that others pay
