"""The page for the wallet in a browser: who may ask it, what it may do, and that what comes back is checked."""
from __future__ import annotations

import http.client
import json
import threading
import urllib.parse
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from eth_account.messages import encode_typed_data

from orchestrator.chain import bridge, typed
from orchestrator.chain.bridge import Ask
from orchestrator.chain.browser import BrowserWallet
from orchestrator.chain.funds import Purse
from orchestrator.chain.rpc import Rpc
from orchestrator.chain.signer import Watcher
from orchestrator.domain.escrow import EscrowFacts
from orchestrator.errors import Refused
from tests.fakes.browser import Person, somebody
from tests.fakes.labchain import Lab, a_key, a_word, an_access_hash, lab
from tests.fakes.outbox import MemoryOutbox

pytestmark = pytest.mark.money
FACTS = EscrowFacts(31337, "0x" + "aa" * 20, "0x" + "bb" * 20)


class Page:
    """A page that waits, and its host and token."""

    def __init__(self) -> None:
        self.shown, self.result = threading.Event(), list[Any]()
        self._thread = threading.Thread(target=self._ask, daemon=True)
        self._thread.start()
        assert self.shown.wait(10)

    def _ask(self) -> None:
        try:
            self.result.append(bridge.ask(Ask("Which?", "a network", 1), self._show, 30))
        except Refused as no:
            self.result.append(no)

    def _show(self, url: str) -> None:
        parts = urllib.parse.urlsplit(url)
        self.host, self.token = parts.netloc, parts.path.strip("/")
        self.shown.set()

    def request(self, method: str, path: str, body: bytes | None = None, **headers: str | None) -> http.client.HTTPResponse:
        """As our page would, apart from what is changed; None leaves a header out."""
        plain = {"Host": self.host, "Sealtune-Token": self.token,
                 **({"Origin": f"http://{self.host}", "Content-Type": "application/json"} if body is not None else {})}
        sent = {**plain, **{name.replace("_", "-"): value for name, value in headers.items()}}
        connection = http.client.HTTPConnection(*self.host.split(":"), timeout=10)  # type: ignore[arg-type]
        connection.putrequest(method, path, skip_host=True, skip_accept_encoding=True)
        for name, value in {**sent, "Content-Length": str(len(body))}.items() if body is not None else sent.items():
            if value is not None:
                connection.putheader(name, value)
        connection.endheaders(body)
        answer = connection.getresponse()
        answer.read_all = answer.read()  # type: ignore[attr-defined]
        connection.close()
        return answer

    def finish(self) -> None:
        assert self.request("POST", f"/{self.token}/answer", b'{"refused": "x"}').status in (204, 409)
        self._thread.join(10)
        assert not self._thread.is_alive()


@pytest.fixture
def page() -> Iterator[Page]:
    found = Page()
    yield found
    if not found.result:
        found.finish()


def test_the_page_may_do_nothing_else(page: Page) -> None:
    answer = page.request("GET", f"/{page.token}/", Sealtune_Token=None)
    policy = dict(part.split(" ", 1) for part in (answer.headers["Content-Security-Policy"]).split("; "))
    assert policy["default-src"] == "'none'" and policy["connect-src"] == "'self'" and policy["frame-ancestors"] == "'none'"
    nonce = policy["script-src"].removeprefix("'nonce-").removesuffix("'")
    assert policy["style-src"] == policy["script-src"] and len(nonce) == 32
    text = answer.read_all.decode()  # type: ignore[attr-defined]
    assert text.count(nonce) == 2 == text.count("nonce=") and "http://" not in text and "https://" not in text
    assert len(page.token) == 64 and page.token not in text
    for name, value in (("Cache-Control", "no-store"), ("X-Frame-Options", "DENY"), ("Referrer-Policy", "no-referrer"),
                        ("X-Content-Type-Options", "nosniff")):
        assert answer.headers[name] == value
    assert "Access-Control-Allow-Origin" not in answer.headers


def test_who_may_not_ask(page: Page) -> None:
    own, port = f"/{page.token}/", page.host.split(":")[1]
    cases: list[tuple[int, str, str, bytes | None, dict[str, str | None]]] = [
        (403, "GET", own, None, {"Host": "evil.example"}), (403, "GET", own, None, {"Host": f"localhost:{port}"}),
        (403, "GET", own, None, {"Host": "127.0.0.1"}), (403, "GET", own, None, {"Host": None}),
        (403, "GET", own + "ask", None, {"Host": f"evil.example:{port}"}),
        (404, "GET", "/", None, {}), (404, "GET", "/ask", None, {}), (404, "GET", f"/{'0' * 64}/", None, {}),
        (404, "GET", f"/{page.token}", None, {}), (404, "GET", own + "../ask", None, {}), (404, "GET", own + "x", None, {}),
        (404, "GET", own + "ask", None, {"Sealtune_Token": None}),
        (404, "GET", own + "ask", None, {"Sealtune_Token": "0" * 64}),
        (403, "POST", own + "answer", b"{}", {"Origin": "http://evil.example"}),
        (403, "POST", own + "answer", b"{}", {"Origin": None}), (403, "POST", own + "answer", b"{}", {"Origin": "null"}),
        (403, "POST", own + "answer", b"{}", {"Origin": f"https://{page.host}"}),
        (403, "POST", own + "answer", b"{}", {"Sealtune_Token": "0" * 64}),
        (403, "POST", own + "answer", b"{}", {"Host": "evil.example"}), (404, "POST", own + "x", b"{}", {}),
        (404, "POST", f"/{'0' * 64}/answer", b"{}", {}),
        (400, "POST", own + "answer", b"{}", {"Content_Type": "text/plain"}), (400, "POST", own + "answer", b"[]", {}),
        (400, "POST", own + "answer", b"\xff", {}), (400, "POST", own + "answer", b"[" * 100_000, {}),
        (501, "OPTIONS", own + "answer", None, {}), (501, "PUT", own, b"{}", {}),
    ]
    for status, method, path, body, headers in cases:
        assert page.request(method, path, body, **headers).status == status, (method, path, headers)
    assert not page.result


def test_one_answer_and_it_is_gone(page: Page) -> None:
    assert page.request("POST", f"/{page.token}/answer", b'{"account": "0x1"}').status == 204
    page._thread.join(10)
    assert page.result == [{"account": "0x1"}]
    with pytest.raises(OSError):
        page.request("GET", f"/{page.token}/")


def test_a_no_and_no_answer() -> None:
    page = Page()
    page.finish()
    assert isinstance(page.result[0], Refused) and "said no" in str(page.result[0])
    with pytest.raises(Refused, match="nobody answered"):
        bridge.ask(Ask("Which?", "a network", 1), lambda _: None, 0)


def test_the_document_is_what_is_signed() -> None:
    for value in (typed.End(a_word(), a_word()), typed.ApiRequest("GET", "/x", a_word(), a_word(), 5, a_word())):
        document = json.loads(json.dumps(typed.document(FACTS, value)))
        assert typed.digest(encode_typed_data(full_message=document)) == typed.digest(typed.message(FACTS, value))


@pytest.mark.parametrize("account", [None, 5, "", "0x12", "0x" + "g" * 40, "0x" + "aa" * 21])
def test_no_account(account: Any) -> None:
    with pytest.raises(Refused, match="named no account"):
        BrowserWallet(FACTS, "", Person(somebody(), account=account), patience_s=10)


def test_a_chain_node_of_the_persons_own_is_not_shown_to_a_page() -> None:
    asked: list[Ask] = []
    for facts in (FACTS, replace(FACTS, chain_id=137)):
        wallet = BrowserWallet(facts, "https://node.example/secret", Person(somebody()), patience_s=10)
        asked.append(Ask("", "", facts.chain_id, rpc=wallet._rpc))
    assert [one.rpc for one in asked] == ["https://node.example/secret", ""]


# ---- with a contract ----


@pytest.fixture(scope="module", params=["anvil", "py-evm"])
def world(request: Any, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with lab(request.param, tmp_path_factory.mktemp(request.param)) as found:
        yield found


def rent(world: Lab) -> Any:
    escrow = world.escrow(MemoryOutbox())
    rental = escrow.create(a_key(), *world.quote(), 600, 10**9, an_access_hash())
    world.act(world.provider, "activate", rental.id, a_word())
    return escrow.view(rental.id)


def test_ended_by_a_key_that_was_never_here(world: Lab) -> None:
    """The wallet in the browser signs twice, another account pays the gas, the rest goes to the renter."""
    rentals, before = [rent(world) for _ in range(2)], world.usdc(world.renter.address)
    person, nonce = Person(world.renter), Rpc(world.url).nonce(world.renter.address)
    wallet = BrowserWallet(world.facts, world.url, person, patience_s=20)
    assert wallet.address == world.renter.address
    looked = Purse(Rpc(world.url), Watcher(wallet.address), MemoryOutbox(), world.facts)
    assert [r.id for r in looked.escrow.open_rentals()] == [r.id for r in rentals]
    signatures = wallet.sign_ends(rentals)
    payer = Purse(Rpc(world.url), world.provider, MemoryOutbox(), world.facts)
    closings = payer.close_signed(rentals, signatures)
    assert [(c.problem, c.rental.closed_by, c.rental.outcome) for c in closings] == [(None, "renter", "ended")] * 2
    assert world.usdc(world.renter.address) - before == sum(c.rental.refunded for c in closings) > 0
    assert Rpc(world.url).nonce(world.renter.address) == nonce and len(set(person.pages)) == 2


@pytest.mark.parametrize(("signatures", "words"), [
    ([], "did not sign all"), (None, "did not sign all"), ([5], "not the signature"), (["0x"], "not the signature"),
    (["0x" + "11" * 65], "not the signature")])
def test_what_comes_back_is_checked(world: Lab, signatures: Any, words: str) -> None:
    rental = rent(world)
    with pytest.raises(Refused, match=words):
        BrowserWallet(world.facts, "", Person(world.renter, signatures=signatures), patience_s=20).sign_ends([rental])
    another = BrowserWallet(world.facts, "", Person(somebody()), world.renter.address, patience_s=20)
    with pytest.raises(Refused, match="not the signature"):
        another.sign_ends([rental])
    world.escrow(MemoryOutbox()).close(rental.id, False, "", "")


def test_a_signature_that_ends_with_zero_or_one(world: Lab) -> None:
    rental = rent(world)
    good = world.renter.sign_message(typed.message(world.facts, typed.End(rental.id, "0x" + "00" * 32)))
    old = good[:-2] + f"{int(good[-2:], 16) - 27:02x}"
    wallet = BrowserWallet(world.facts, "", Person(world.renter, signatures=[old]), patience_s=20)
    assert wallet.sign_ends([rental]) == [good]
    world.escrow(MemoryOutbox()).close(rental.id, False, "", "")
