"""What is signed is what the contract hashes, and nothing else passes for a signature."""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from orchestrator.chain import typed
from orchestrator.chain.escrow import struct
from orchestrator.chain.wallet import Wallet
from orchestrator.domain.escrow import ZERO_ADDRESS, EscrowFacts, Quote, Ready
from orchestrator.errors import OfferGone
from tests.fakes.labchain import Lab, a_key, lab
from tests.fakes.outbox import MemoryOutbox

pytestmark = pytest.mark.money
FACTS = EscrowFacts(31337, "0x" + "aa" * 20, "0x" + "bb" * 20)
WORD = "0x" + "01" * 32
WALLET = Wallet(b"\x01" * 32)
READY = Ready(WORD, "node.example", 22, "renter", ("ssh-ed25519 AAAA",), WORD, 5, WORD)
ORDER = 0xFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFEBAAEDCE6AF48A03BBFD25E8CD0364141


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab("anvil", tmp_path_factory.mktemp("anvil")) as found:
        yield found


def test_the_contract_agrees(world: Lab) -> None:
    quote, signature = world.quote()
    signable = typed.message(world.facts, quote)
    assert typed.digest(signable) == "0x" + world.escrow_read("quoteDigest", struct(quote)).hex()
    assert typed.signer(signable, signature) == world.provider.address
    assert typed.domain_separator(world.facts) == "0x" + world.escrow_read("DOMAIN_SEPARATOR").hex()
    key = a_key()
    on_chain = world.escrow_read("rentalId", world.renter.address, "0x" + key)
    assert world.escrow(MemoryOutbox()).rental_id(key) == "0x" + on_chain.hex()


def test_a_signature_is_for_one_value_on_one_contract() -> None:
    signature = WALLET.sign_message(typed.message(FACTS, READY))
    assert typed.signer(typed.message(FACTS, READY), signature) == WALLET.address
    for changed in (replace(READY, port=23), replace(READY, hostKeys=()), replace(READY, host="node.exampl")):
        assert typed.signer(typed.message(FACTS, changed), signature) != WALLET.address
    for facts in (replace(FACTS, chain_id=1), replace(FACTS, escrow="0x" + "ab" * 20)):
        assert typed.signer(typed.message(facts, READY), signature) != WALLET.address


def test_one_signature_has_one_spelling() -> None:
    """The contract refuses the twin with the other half of s, so we do; it would look like a second signature."""
    signable = typed.message(FACTS, READY)
    raw = bytes.fromhex(WALLET.sign_message(signable)[2:])
    twin = raw[:32] + (ORDER - int.from_bytes(raw[32:64], "big")).to_bytes(32, "big") + bytes([55 - raw[64]])
    short = raw[:64].hex()
    for bad in ("0x" + twin.hex(), raw.hex(), "0x" + short, "0x" + short + "00", "", "0x" + "ff" * 65):
        assert typed.signer(signable, bad) is None


anything = st.one_of(st.none(), st.integers(), st.text(max_size=80), st.binary(max_size=8), st.booleans(),
                     st.lists(st.text(max_size=5), max_size=3))


@given(st.sampled_from([f.name for f in fields(Quote)]), anything)
def test_a_strangers_quote_never_breaks_anything(name: str, value: Any) -> None:
    from orchestrator.chain import checks

    good = Quote(WALLET.address, "0x" + "22" * 20, WORD, WORD, 1, 0, ZERO_ADDRESS, 1, 2, 3, 4, 1 << 40, WORD)
    try:
        checks.quote(FACTS, "0x" + "22" * 20, replace(good, **{name: value}), "0x" + "00" * 65, 0)
    except OfferGone:
        return
    raise AssertionError("an unsigned quote passed")


@given(method=st.sampled_from(["GET", "PUT"]), path=st.text(max_size=40), body=st.binary(max_size=40))
def test_requests_come_through_as_they_were_signed(method: str, path: str, body: bytes) -> None:
    if any(0xD800 <= ord(c) <= 0xDFFF for c in path):
        return
    request = typed.ApiRequest(method, path, typed.body_hash(body), WORD, 1_796_000_000, WORD)
    headers = typed.request_headers(FACTS, WALLET, request)
    seen = {name.lower(): value for name, value in headers.items()}
    assert typed.read_request(FACTS, method, path, body, seen) == (WALLET.address, request)
    assert typed.read_request(FACTS, method, path, body + b"!", seen)[0] != WALLET.address


@pytest.mark.parametrize("changes", [{"Sealtune-Signature": "0x00"}, {"Sealtune-Issued-At": "soon"},
                                     {"Sealtune-Rental": "5"}, {"Sealtune-Nonce": None}])
def test_requests_that_prove_nothing(changes: dict[str, Any]) -> None:
    headers: dict[str, Any] = typed.request_headers(FACTS, WALLET, typed.ApiRequest("GET", "/", WORD, WORD, 1, WORD))
    given = {name: value for name, value in {**headers, **changes}.items() if value is not None}
    with pytest.raises(ValueError, match=r"Sealtune|rentalId|signature"):
        typed.read_request(FACTS, "GET", "/", b"", given)


def test_words_of_32_bytes() -> None:
    assert typed.bytes32("") == bytes(32) and typed.bytes32("sha256:" + "ab" * 32) == b"\xab" * 32
    assert typed.bytes32("cd" * 32) == b"\xcd" * 32 and typed.bytes32("0x" + "11" * 20) == bytes(12) + b"\x11" * 20
    for bad in ("0x1", "zz" * 32, "ab" * 33):
        with pytest.raises(ValueError, match="not 32 bytes"):
            typed.bytes32(bad)
