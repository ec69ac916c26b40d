"""What would stop a deposit is found before anything is signed: no approval is paid for in vain."""
from __future__ import annotations

from collections.abc import Iterator

import pytest

from orchestrator.chain import contracts, refusals, wallet
from orchestrator.chain.rpc import Rpc
from orchestrator.chain.wallet import Wallet
from orchestrator.errors import NoFunds
from orchestrator.lab.deploy import GAS_WEI, mint, send
from tests.fakes.labchain import NO_FEE, Lab, a_key, an_access_hash, lab
from tests.fakes.outbox import MemoryOutbox

pytestmark = pytest.mark.money
DEPOSIT = 66_667


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab("anvil", tmp_path_factory.mktemp("anvil")) as found:
        yield found


@pytest.fixture
def someone(world: Lab) -> Wallet:
    """A new account with one deposit and some gas."""
    made = Wallet(bytes.fromhex(a_key()))
    mint(world.url, world.folder, made.address, DEPOSIT)
    world.rpc("anvil_setBalance", made.address, hex(GAS_WEI))
    return made


def refused(world: Lab, who: Wallet, words: str) -> None:
    outbox, sent = MemoryOutbox(), Rpc(world.url).nonce(who.address)
    with pytest.raises(NoFunds, match=words):
        world.escrow(outbox, who=who).create(a_key(), *world.quote(renter=who.address, **NO_FEE), 600, DEPOSIT,
                                             an_access_hash())
    assert outbox.kept == {} and Rpc(world.url).nonce(who.address) == sent


def as_issuer(world: Lab, name: str, *arguments: str) -> None:
    rpc = Rpc(world.url)
    token = rpc.contract(world.facts.token, contracts.usdc().token_abi)
    deployer = wallet.load_key(world.folder / "keys" / "deployer.key")
    send(rpc, deployer, world.facts.token, token.encode(name, *arguments))


def test_paused(world: Lab, someone: Wallet) -> None:
    as_issuer(world, "pause")
    try:
        refused(world, someone, "USDC is paused by its issuer")
    finally:
        as_issuer(world, "unpause")


def test_blacklisted(world: Lab, someone: Wallet) -> None:
    as_issuer(world, "blacklist", someone.address)
    refused(world, someone, f"the issuer of USDC has blocked {someone.address}")


def test_a_blacklisted_escrow(world: Lab, someone: Wallet) -> None:
    as_issuer(world, "blacklist", world.facts.escrow)
    try:
        refused(world, someone, "has blocked the escrow")
    finally:
        as_issuer(world, "unBlacklist", world.facts.escrow)


def test_a_cent_too_little(world: Lab, someone: Wallet) -> None:
    rpc = Rpc(world.url)
    token = rpc.contract(world.facts.token, contracts.usdc().token_abi)
    send(rpc, someone, world.facts.token, token.encode("transfer", world.provider.address, 1))
    refused(world, someone, r"has 0\.066666 USDC, 0\.066667 USDC are needed")


def test_gas_for_the_approval_alone_is_too_little(world: Lab, someone: Wallet) -> None:
    base, _ = Rpc(world.url).tips(1)
    world.rpc("anvil_setBalance", someone.address, hex(200_000 * (2 * base + 10**9)))
    refused(world, someone, r"has 0\.000\d+ POL, paying a deposit takes about 0\.00\d+ POL")


def test_advice_is_about_errors_that_there_are() -> None:
    assert set(refusals._ADVICE) < set(refusals._WORDS)
