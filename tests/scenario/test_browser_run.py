"""A run that a wallet in a browser pays for, typed as a person would; the person is played over HTTP.

test_bridge_chromium.py asks the same of a real browser.
"""
from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from orchestrator.chain.rpc import Rpc
from orchestrator.chain.wallet import Wallet
from tests.fakes.browser import somebody
from tests.fakes.outbox import MemoryOutbox
from tests.scenario.data import parcels
from tests.scenario.lab import SLOW, Lab, Laptop

pytestmark = [pytest.mark.money]
PURSE = 3_000_000
AGREED = 450_000                         # an hour at the lab's price, the worst case that the run file allows


@dataclass(frozen=True)
class Owner:
    """A person with a wallet in the browser, and the laptop whose settings name its account."""

    lab: Lab
    laptop: Laptop
    key: Wallet
    monkeypatch: pytest.MonkeyPatch

    def says(self, *words: str) -> None:
        """What the person's browser does with a page: signs, or with "no" declines."""
        file = self.laptop.folder.parent / "elsewhere.key"
        file.touch(0o600)
        file.write_text(bytes(self.key._account.key).hex())
        self.monkeypatch.setenv("BROWSER", " ".join([sys.executable, "-m", "tests.fakes.browser", str(file), "%s", *words]))

    def settings(self, contact_seconds: int = 6) -> None:
        facts = self.lab.facts
        self.laptop.set(
            hub=facts["hub_url"], contact_seconds=contact_seconds, policy={"operator_can_read": True},
            open={"url": facts["provider_url"], "rpc": facts["chain_url"], "chain_id": 31337, "wallet": "browser",
                  "account": self.key.address, "token": facts["money"]["token"], "escrow": facts["money"]["escrow"]})

    def show(self) -> Any:
        return self.laptop.sealtune("wallet", "show", "--json").tree

    @property
    def usdc(self) -> int:
        return self.lab.money.usdc(self.key.address)

    @property
    def coin(self) -> int:
        return Rpc(self.lab.money.url).balance(self.key.address)

    def open_rentals(self) -> list[Any]:
        looking = self.lab.money.escrow(MemoryOutbox(), who=self.key)
        return list(looking.open_rentals())


@pytest.fixture
def owner(lab: Lab, laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> Iterator[Owner]:
    found = Owner(lab, laptop, somebody(), monkeypatch)
    found.settings()
    found.says()
    laptop.sealtune("wallet", "fund", "--give", "--budget", "3.00 USDC")
    yield found
    laptop.leave()
    if found.open_rentals():             # or the next test could rent nothing
        found.settings(contact_seconds=1)
        laptop.sealtune("end", "--leaked", "--yes")


def test_one_signature_pays_for_a_run_and_the_rest_comes_home(owner: Owner) -> None:
    before = owner.show()
    assert (before["address"], before["usdc"], before["set_aside"]) == (owner.key.address, str(PURSE), "0")
    assert before["payer"] != before["address"] and int(before["pol"]) > 0 == owner.coin
    said = owner.laptop.sealtune("wallet", "fund", "--budget", "50 USDC").out
    assert f"second key {before['payer']}" in said and f"to send to {owner.key.address}:\n  47.00 USDC" in said

    done = owner.laptop.sealtune("run", owner.laptop.write_run(parcels(40), market="open"), "--yes", "--json")
    assert (done.tree["verdict"], done.tree["owed"]) == ("verified", [])
    assert done.err.count("open this page in the browser that has your wallet") == 1
    money = {name: int(done.tree["money"][name]) for name in ("deposit", "paid", "fee", "refunded")}
    assert money["deposit"] == money["paid"] + money["fee"] + money["refunded"] > money["refunded"] > 0
    assert owner.usdc == PURSE - money["paid"] - money["fee"] and owner.open_rentals() == []
    after = owner.show()
    assert (after["set_aside"], after["locked"], after["open_rentals"]) == ("0", "0", 0)
    assert owner.coin > int(before["pol"]) * 9 // 10, "what was left of the gas went home"
    secret = bytes(owner.key._account.key)
    for file in (p for p in owner.laptop.folder.rglob("*") if p.is_file()):
        content = file.read_bytes()
        assert secret not in content and secret.hex().encode() not in content, file


def test_a_killed_run_is_ended_and_its_budget_comes_home(owner: Owner) -> None:
    going = owner.laptop.begin("run", owner.laptop.write_run(parcels(40), market="open", knobs=SLOW), "--yes")
    run = owner.laptop.in_training(going, steps=1)
    going.kill()
    (rental,) = owner.open_rentals()
    assert owner.usdc == PURSE - AGREED and int(owner.show()["set_aside"]) == AGREED - rental.deposit
    rows = owner.laptop.sealtune("rentals", "--json").tree["rentals"]
    budget, lease = sorted(rows, key=lambda row: str(row["owed"]))
    assert {"deposit", "lease"} <= set(lease["owed"]) and (budget["owed"], budget["deposit"]) == (["budget"], str(AGREED))
    assert "0.45 USDC set aside for the run" in owner.laptop.sealtune("rentals").out
    owner.laptop.sealtune("end", run, "--yes")
    closed = owner.lab.rental(rental.id)
    assert (closed.status, closed.closed_by) == ("closed", "renter")
    assert owner.usdc == PURSE - closed.paid - closed.fee and owner.show()["set_aside"] == "0"


def test_who_says_no_pays_nothing(owner: Owner) -> None:
    owner.says("no")
    refused = owner.laptop.sealtune("run", owner.laptop.write_run(parcels(40), market="open"), "--yes", code=1).err
    assert "said no; nothing was paid" in refused
    assert owner.usdc == PURSE and owner.open_rentals() == []
    swept = owner.laptop.sealtune("wallet", "sweep", "--yes", "--json").tree
    assert (swept["to"], swept["usdc"]) == (owner.key.address, "0") and int(swept["pol"]) > 0
    short = owner.laptop.sealtune("run", owner.laptop.write_run(parcels(40), market="open"), "--yes", code=1).err
    assert "second key" in short and "sealtune wallet fund" in short
    elsewhere = owner.laptop.sealtune("wallet", "sweep", "--yes", "--to", somebody().address, code=2).err
    assert f"sends only home, to {owner.key.address}" in elsewhere
    assert "in your browser" in owner.laptop.sealtune("wallet", "new", code=2).err
