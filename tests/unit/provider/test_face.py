"""The provider's HTTP face, its door, its file and its process, tried from outside."""
from __future__ import annotations

import json
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from orchestrator.domain.document import canonical, encode
from orchestrator.errors import BadInput, Refused, Transient
from orchestrator.provider.access import Door
from orchestrator.provider.config import load
from orchestrator.provider.serve import command, listener
from orchestrator.provider.store import Book, Guest
from tests.fakes.escrow import FakeEscrow, wallet
from tests.fakes.labchain import lab
from tests.fakes.open_market import SSH_KEY, Street, provider_config, street, until

pytestmark = pytest.mark.money


@pytest.fixture
def stall(tmp_path: Path) -> Iterator[Street]:
    with street(tmp_path) as made:
        yield made


def ask(stall: Street, method: str, path: str, body: bytes = b"", headers: Any = None) -> httpx.Response:
    with httpx.Client(trust_env=False) as http:
        return http.request(method, stall.provider.url + path, content=body, headers=headers)


def code(answer: httpx.Response) -> str:
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["status"] == answer.status_code
    return str(answer.json()["code"])


def test_nothing_about_a_rental_without_its_renters_signature(stall: Street) -> None:
    lease, _ = stall.begun()
    path = f"/v1/rentals/{lease.lease_id}"
    sign = stall.escrow.sign_request
    good = dict(sign("GET", path, b"", lease.lease_id))
    assert ask(stall, "GET", path, headers=good).json()["state"] == "ready"
    assert code(ask(stall, "GET", path, headers=good)) == "stale"                                   # said before
    assert code(ask(stall, "GET", path)) == "unsigned"
    assert code(ask(stall, "GET", path, headers=sign("PUT", path, b"", lease.lease_id))) == "not-yours"
    assert code(ask(stall, "GET", path + "?x=1", headers=sign("GET", path, b"", lease.lease_id))) == "not-yours"
    hint = canonical({"ssh_public_key": SSH_KEY})
    assert code(ask(stall, "PUT", path, hint, sign("PUT", path, b"", lease.lease_id))) == "not-yours"
    assert code(ask(stall, "GET", path, headers=sign("GET", path, b"", "0x" + "11" * 32))) == "unsigned"
    stranger = FakeEscrow(stall.contract, wallet())
    assert code(ask(stall, "GET", path, headers=stranger.sign_request("GET", path, b"", lease.lease_id))) == "not-yours"


def test_a_signature_grows_old(stall: Street) -> None:
    lease, _ = stall.begun()
    path = f"/v1/rentals/{lease.lease_id}"
    headers = stall.escrow.sign_request("GET", path, b"", lease.lease_id)
    stall.clock.sleep(301)
    assert code(ask(stall, "GET", path, headers=headers)) == "stale"


def test_requests_outside_the_protocol(stall: Street) -> None:
    assert code(ask(stall, "GET", "/v2/offers")) == "unknown-path"
    assert code(ask(stall, "DELETE", "/v1/offers")) == "refused"
    assert code(ask(stall, "POST", "/v1/quotes", b"{")) == "malformed"
    assert code(ask(stall, "POST", "/v1/quotes", b'{"offer_id": "lab-1"}')) == "malformed"
    assert code(ask(stall, "POST", "/v1/quotes", b" " * 70_000)) == "too-large"
    assert code(ask(stall, "GET", "/v1/rentals/0x12")) == "unknown-rental"


def test_a_chain_that_is_away_is_said_as_such(stall: Street) -> None:
    stall.chain.faults["down"] = 10_000
    assert code(ask(stall, "GET", "/v1/offers")) == "try-again"
    stall.chain.faults["down"] = 0


@settings(deadline=None)
@given(st.binary(max_size=200))
def test_the_door_takes_nothing_but_one_key_line(data: bytes) -> None:
    door = Door(Path("nowhere/authorized_keys"))
    with pytest.raises(ValueError, match="not an ed25519"):
        door.admit(data.decode("latin-1"))


def test_the_door_holds_one_key_or_none(tmp_path: Path) -> None:
    door = Door(tmp_path / "authorized_keys")
    assert door.admitted() is None
    door.admit(SSH_KEY)
    door.admit(SSH_KEY)
    assert (tmp_path / "authorized_keys").read_text() == f"restrict {SSH_KEY}\n"
    door.admit(SSH_KEY[:-1] + "D")
    assert (tmp_path / "authorized_keys").read_text() == f"restrict {SSH_KEY[:-1]}D\n"
    door.shut()
    assert (tmp_path / "authorized_keys").read_text() == ""
    assert [path.name for path in tmp_path.iterdir()] == ["authorized_keys"]
    with pytest.raises(ValueError, match="not an ed25519"):
        door.admit(SSH_KEY + "\n" + SSH_KEY)


def test_the_book_forgets_old_guests_and_never_present_ones() -> None:
    book = Book((Guest("present", "r", SSH_KEY),))
    for number in range(500):
        book = book.having(Guest(str(number), "r", SSH_KEY, "ended"))
    assert book.guest("present") and len(book.guests) < 210 and book.guest("499") and not book.guest("100")


def test_a_lock_out_command_that_fails_is_tried_again() -> None:
    command(())()
    command((sys.executable, "-c", ""))()
    with pytest.raises(Transient):
        command((sys.executable, "-c", "raise SystemExit(3)"))()
    with pytest.raises(Transient):
        command(("no-such-command-here",))()


def test_a_taken_port_is_a_plain_error() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(Refused, match="cannot listen"):
        listener("127.0.0.1", taken.getsockname()[1])


@pytest.mark.parametrize(("change", "says"), [
    ({"price_per_hour": "0.45"}, "not an amount"), ({"price_per_hour": "0.45 EUR"}, "EUR"), ({"count": 0}, "count"),
    ({"fee_bps": 1501}, "fee_bps"), ({"node_port": 0}, "port"), ({"node_host_keys": ()}, "hostKeys"),
    ({"fee_recipient": "0x" + "00" * 20}, "fee_recipient"), ({"offer_id": "a b"}, "offer_id"),
    ({"poll_seconds": 0}, "poll"),
])
def test_a_config_that_a_renter_would_refuse(tmp_path: Path, change: dict[str, Any], says: str) -> None:
    file = tmp_path / "provider.json"
    file.write_bytes(canonical(encode(provider_config(tmp_path, **change))[0]))
    with pytest.raises(BadInput, match=says):
        load(file)


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"listen_host": 1}', '{"what": 1}'])
def test_a_config_that_is_none(tmp_path: Path, text: str) -> None:
    file = tmp_path / "provider.json"
    file.write_text(text)
    with pytest.raises(BadInput):
        load(file)
    with pytest.raises(BadInput, match="cannot read"):
        load(tmp_path / "none.json")


def test_the_process_serves_and_ends_when_asked(tmp_path: Path) -> None:
    with lab("anvil", tmp_path / "chain") as chain:
        money = json.loads((chain.folder / "money.json").read_text())
        config = provider_config(tmp_path, rpc=chain.url, chain_id=chain.facts.chain_id, escrow=chain.facts.escrow,
                                 token=chain.facts.token, key_file=money["provider_key"])
        file = tmp_path / "config.json"
        file.write_bytes(canonical(encode(config)[0]))
        assert load(file) == config
        with (tmp_path / "log").open("wb") as log:
            child = subprocess.Popen([sys.executable, "-m", "orchestrator.provider", str(file)], stderr=log,
                                     cwd=Path(__file__).resolve().parents[3])
        try:
            line = until(lambda: (tmp_path / "log").read_text(), lambda text: "offering at" in text, 30)
            url = line.split("offering at ")[1].split()[0]
            with httpx.Client(trust_env=False) as http:
                assert http.get(url + "/v1/info").json()["escrow"] == chain.facts.escrow
                assert http.get(url + "/v1/offers").json()["offers"][0]["offer_id"] == "lab-1"
            child.send_signal(signal.SIGTERM)
            assert child.wait(15) == 0, (tmp_path / "log").read_text()
        finally:
            child.kill()
            child.wait()
