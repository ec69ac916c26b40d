"""The bridge in a real Chromium: a wallet in the page signs, the key never comes here, other pages are refused."""
from __future__ import annotations

import json
import threading
import urllib.parse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from eth_account.messages import encode_typed_data

from orchestrator.chain.browser import BrowserWallet
from orchestrator.chain.escrow import ChainEscrow
from orchestrator.chain.funds import Purse
from orchestrator.chain.rpc import Rpc
from orchestrator.chain.wallet import Wallet
from orchestrator.errors import Refused
from orchestrator.lab.deploy import GAS_WEI
from tests.fakes import labchain
from tests.fakes.browser import somebody
from tests.fakes.chromium import Page, WalletSays, chromium
from tests.fakes.labchain import a_key, a_word, an_access_hash
from tests.fakes.outbox import MemoryOutbox
from tests.fakes.serve import served

pytestmark = [pytest.mark.money, pytest.mark.full]


class TestWallet:
    """As MetaMask answers: accounts, the chain it is on, typed data. `says_no`: the person presses Reject."""

    __test__ = False

    def __init__(self, who: Wallet) -> None:
        self.who, self.chain_id, self.known, self.says_no, self.asked = who, 1, {1}, False, list[str]()

    def __call__(self, method: str, params: Any) -> Any:
        self.asked.append(method)
        match method:
            case "eth_requestAccounts":
                return [self.who.address.lower()]
            case "eth_chainId":
                return hex(self.chain_id)
            case "wallet_switchEthereumChain":
                return self._switch(int(params[0]["chainId"], 16))
            case "wallet_addEthereumChain":
                self.known.add(int(params[0]["chainId"], 16))
                return self._switch(int(params[0]["chainId"], 16))
            case "eth_signTypedData_v4":
                return self._sign(json.loads(params[1]))
        raise WalletSays(4200, "not here")

    def _switch(self, chain_id: int) -> None:
        if chain_id not in self.known:
            raise WalletSays(4902, "Unrecognized chain ID")
        self.chain_id = chain_id

    def _sign(self, document: Any) -> str:
        if self.says_no:
            raise WalletSays(4001, "User rejected the request.")
        assert document["domain"]["chainId"] == self.chain_id, "a wallet signs for the chain that it is on"
        return self.who.sign_message(encode_typed_data(full_message=document))


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[labchain.Lab]:
    with labchain.lab("anvil", tmp_path_factory.mktemp("anvil")) as found:
        yield found


@pytest.fixture
def wallet(world: labchain.Lab) -> TestWallet:
    return TestWallet(world.renter)


@pytest.fixture
def page(wallet: TestWallet, tmp_path: Path) -> Iterator[Page]:
    with chromium(tmp_path, wallet) as found:
        yield found


def press(page: Page, url: str) -> None:
    page.go(url)
    page.until("document.querySelector('button')")
    assert page.run("document.querySelector('button').textContent") == "Go on with Test Wallet <b>"
    page.run("document.querySelector('button').click()")
    page.until("/Done|Nothing was signed|That did not work/.test(document.getElementById('state').textContent)")


class Asking:
    """`work(show)` in a thread beside the page, which is steered from here."""

    def __init__(self, work: Callable[[Callable[[str], None]], Any]) -> None:
        self._work, self._shown, self.came, self.url = work, threading.Event(), list[Any](), ""
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()
        assert self._shown.wait(20)

    def _show(self, url: str) -> None:
        self.url = url
        self._shown.set()

    def _run(self) -> None:
        try:
            self.came.append(self._work(self._show))
        except Refused as no:
            self.came.append(no)

    def result(self) -> Any:
        self._thread.join(20)
        if isinstance(self.came[0], Refused):
            raise self.came[0]
        return self.came[0]


def through(page: Page, work: Callable[[Callable[[str], None]], Any]) -> Any:
    asking = Asking(work)
    press(page, asking.url)
    return asking.result()


def rent(world: labchain.Lab) -> Any:
    escrow = world.escrow(MemoryOutbox())
    rental = escrow.create(a_key(), *world.quote(), 600, 10**9, an_access_hash())
    world.act(world.provider, "activate", rental.id, a_word())
    return escrow.view(rental.id)


def test_a_rental_ended_through_the_page(world: labchain.Lab, page: Page, wallet: TestWallet) -> None:
    rentals = [rent(world), rent(world)]
    browser = through(page, lambda show: BrowserWallet(world.facts, world.url, show))
    assert browser.address == world.renter.address and wallet.asked == ["eth_requestAccounts"]

    def sign(show: Any) -> Any:
        return BrowserWallet(world.facts, world.url, show, browser.address).sign_ends(rentals)

    signatures = through(page, sign)
    assert wallet.asked.count("eth_signTypedData_v4") == 2 and "eth_sendTransaction" not in wallet.asked
    closings = Purse(Rpc(world.url), world.provider, MemoryOutbox(), world.facts).close_signed(rentals, signatures)
    assert [(c.problem, c.rental.closed_by) for c in closings] == [(None, "renter")] * 2


def test_a_rental_paid_through_the_page(world: labchain.Lab, page: Page, wallet: TestWallet) -> None:
    """One signature for the budget; the second key rents, and brings home what is left. The wallet sends nothing."""
    owner, session, before = world.renter, somebody(), world.usdc(world.renter.address)
    world.rpc("anvil_setBalance", session.address, hex(GAS_WEI))
    outbox, sent = MemoryOutbox(), world.rpc("eth_getTransactionCount", owner.address, "latest")

    def escrow(show: Any = None) -> ChainEscrow:
        return world.escrow(outbox, who=session, owner=BrowserWallet(world.facts, world.url, show, owner.address))

    budget = escrow().budget(1_000_000, 400_001, 3600, [world.provider.address])
    assert budget is not None
    assert through(page, lambda show: escrow(show).open_budget(budget)) and world.usdc(owner.address) == before - 1_000_000
    assert wallet.asked.count("eth_signTypedData_v4") == 1 and "eth_sendTransaction" not in wallet.asked
    rental = escrow().create(a_key(), *world.quote(), 600, 10**9, an_access_hash(), [world.provider.address])
    assert (rental.status, rental.renter, rental.budget) == ("funded", owner.address, 1)
    world.act(world.provider, "activate", rental.id, a_word())
    closed = escrow().close(rental.id, False, "", "")
    assert escrow().close_budget(budget)[0] == 1_000_000 - rental.deposit
    assert world.usdc(owner.address) == before - closed.paid - closed.fee
    assert world.rpc("eth_getTransactionCount", owner.address, "latest") == sent


def test_the_person_says_no(world: labchain.Lab, page: Page, wallet: TestWallet) -> None:
    rental, wallet.says_no = rent(world), True
    browser = partial(BrowserWallet, world.facts, world.url, account=world.renter.address)
    with pytest.raises(Refused, match="said no"):
        through(page, lambda show: browser(show).sign_ends([rental]))
    world.escrow(MemoryOutbox()).close(rental.id, False, "", "")


async def elsewhere(scope: Any, receive: Any, send: Any) -> None:
    """A page of somebody else."""
    await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/html")]})
    await send({"type": "http.response.body", "body": b"<title>elsewhere</title>"})


def test_a_page_of_another_origin_or_host_is_refused(world: labchain.Lab, page: Page) -> None:
    """Even one that knows the token: no answer of its is taken, ours is not shown in a frame, a name that leads here is
    not our host, and our own page reaches nothing else."""
    asking = Asking(lambda show: BrowserWallet(world.facts, world.url, show))
    url = asking.url
    parts = urllib.parse.urlsplit(url)
    with served(elsewhere) as evil:
        page.go(evil)
        assert page.fetches(url + "ask") == "TypeError"
        answer = '{method: "POST", body: "{}", mode: "%s", headers: {"Content-Type": "%s"}}'
        assert page.fetches(url + "answer", answer % ("cors", "application/json")) == "TypeError"
        assert page.fetches(url + "answer", answer % ("no-cors", "text/plain")) in ("TypeError", "opaque 0")
        page.run(f"f = document.createElement('iframe'); f.src = {json.dumps(url)}; document.body.append(f)")
        page.until("(() => { try { return f.contentDocument === null } catch (e) { return true } })()")
        page.go(f"http://evil.test:{parts.port}{parts.path}")
        assert "wallet" not in str(page.run("document.body.innerText"))
        page.go(url)
        page.until("document.querySelector('button')")
        assert page.fetches(evil) == "TypeError"
        page.run("s = document.createElement('script'); s.textContent = 'window.ran = 1'; document.body.append(s)")
        assert page.run("typeof window.ran") == "undefined"
    assert not asking.came
    press(page, url)
    assert asking.result().address == world.renter.address
