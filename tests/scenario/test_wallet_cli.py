"""`sealtune wallet` and `sealtune escrow`, typed as a person would: a wallet of one's own on the lab's chain."""
from __future__ import annotations

import contextlib
import json
import os
import pty
import re
import select
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from orchestrator.chain.networks import AMOY
from orchestrator.chain.wallet import Wallet
from orchestrator.domain.event import owed
from orchestrator.domain.money import USDC, Money
from orchestrator.lab.deploy import give
from tests.fakes.counting import counting
from tests.fakes.labchain import a_key, a_word, an_access_hash
from tests.fakes.outbox import MemoryOutbox
from tests.scenario.data import parcels
from tests.scenario.lab import PATIENCE, ROOT, Done, Lab, Laptop, command

pytestmark = [pytest.mark.money]
PASSWORD = "correct horse"
FUND_KEYS = {"address", "payer", "network", "chain_id", "usdc", "pol", "usdc_e", "locked", "credit", "set_aside",
             "open_rentals", "paused", "blacklisted", "why"}


@dataclass(frozen=True)
class Own:
    """A laptop whose open market is the lab's, with a keystore of its own."""

    lab: Lab
    laptop: Laptop
    password_file: Path

    def __call__(self, *words: str | Path) -> Any:
        return self.said(*words, "--json").tree

    def said(self, *words: str | Path, code: int = 0) -> Done:
        return self.laptop.here(*words, code=code)

    @property
    def key(self) -> Wallet:
        from orchestrator.chain.wallet import load

        return load(self.laptop.state / "wallet.json", PASSWORD)

    def settings(self, **changes: Any) -> None:
        facts = self.lab.facts
        page = {"url": facts["provider_url"], "rpc": facts["chain_url"], "chain_id": 31337,
                "token": facts["money"]["token"], "escrow": facts["money"]["escrow"],
                "password_file": str(self.password_file), **changes}
        self.laptop.set(open={k: v for k, v in page.items() if v is not None}, hub=facts["hub_url"],
                        policy={"operator_can_read": True})

    def rent(self) -> Any:
        """A rental of this wallet that no journal knows."""
        money = self.lab.money
        escrow = money.escrow(MemoryOutbox(), who=self.key)
        rental = escrow.create(a_key(), *money.quote(renter=self.key.address), 600, 10**9, an_access_hash())
        money.act(money.provider, "activate", rental.id, a_word())
        return escrow.view(rental.id)


@pytest.fixture
def own(lab: Lab, tmp_path: Path) -> Own:
    laptop = lab.laptop(tmp_path / "laptop")
    file = laptop.folder / "password"
    file.write_text(PASSWORD + "\n")
    file.chmod(0o600)
    found = Own(lab, laptop, file)
    found.settings()
    return found


@pytest.fixture
def made(own: Own) -> Own:
    """With a wallet that opens fast: the key behind the password is stretched less than ours are."""
    keystore = Account.encrypt(bytes.fromhex(a_key()), PASSWORD, kdf="scrypt", iterations=2)
    (own.laptop.state / "wallet.json").write_text(json.dumps(keystore))
    return own


@pytest.fixture
def funded(made: Own) -> Own:
    give(made.lab.facts["chain_url"], made.lab.folder / "chain", made.key.address, 3 * 10**6)
    return made


def test_from_nothing_to_a_run_and_home_again(own: Own) -> None:
    made = own("wallet", "new")
    path = own.laptop.state / "wallet.json"
    assert made == {"address": own.key.address, "keystore": str(path), "keyring": False}
    assert path.stat().st_mode & 0o777 == 0o600

    asked = own("wallet", "fund", "--budget", "3.00 USDC")
    assert asked["need"]["usdc"] == asked["send"]["usdc"] == "3000000" and int(asked["send"]["pol"]) > 0
    page = own.said("wallet", "fund", "--budget", "3.00 USDC").out
    assert made["address"] in page and "3.00 USDC" in page and "--give" in page
    given = own("wallet", "fund", "--give", "--budget", "3.00 USDC")
    assert given["send"] == {"usdc": "0", "pol": "0"} and "nothing needs to be sent" in own.said(
        "wallet", "fund", "--budget", "3.00 USDC").out

    ran = own.laptop.sealtune("run", own.laptop.write_run(parcels(20), market="open"), "--yes", "--json").tree
    assert (ran["verdict"], ran["owed"]) == ("verified", [])
    cost = int(ran["money"]["paid"]) + int(ran["money"]["fee"])
    shown = own("wallet", "show")
    assert set(shown) == FUND_KEYS and int(shown["usdc"]) == 3_000_000 - cost
    assert (shown["open_rentals"], shown["locked"], shown["credit"]) == (0, "0", "0")

    home = Wallet(bytes.fromhex(a_key())).address
    swept = own("wallet", "sweep", "--to", home, "--yes")
    assert int(swept["usdc"]) == own.lab.money.usdc(home) == 3_000_000 - cost
    assert own("wallet", "show")["usdc"] == "0" and own("wallet", "sweep", "--to", home, "--yes")["transactions"] == []


def test_open_rentals_from_the_wallet_alone(funded: Own) -> None:
    rentals = [funded.rent() for _ in range(3)]
    shown = funded("escrow", "open")
    assert {r["id"] for r in shown["rentals"]} == {r.id for r in rentals}
    assert int(shown["locked"]) == sum(r.deposit for r in rentals) >= int(shown["can_still_cost"]) > 0
    one = funded("escrow", "show", rentals[0].id)
    assert (one["status"], one["deposit"], one["renter"]) == ("active", str(rentals[0].deposit), funded.key.address)
    text = funded.said("escrow", "show", rentals[0].id[:14]).out
    assert rentals[0].id in text and "more if nobody ends it" in text
    refused = funded.said("wallet", "sweep", "--to", "0x" + "5e" * 20, "--yes", code=1)
    assert "3 rentals of this wallet are open" in refused.err
    assert [r["status"] for r in funded("escrow", "end", rentals[1].id[:20], "--yes")["ended"]] == ["closed"]
    ended = funded.said("escrow", "end", "--all", "--yes")
    assert "2 open rentals" in ended.err and "2 of 2 ended; not wiped by you" in ended.out
    assert funded("escrow", "end", "--all", "--yes") == {"ended": []}
    assert funded("escrow", "show", rentals[0].id)["outcome"] == "ended"
    for wrong in ("0x" + "00" * 32, "nobody"):
        funded.said("escrow", "show", wrong, code=10)


@pytest.mark.parametrize("count", [6, pytest.param(50, marks=pytest.mark.full)])
def test_an_empty_laptop_ends_many_leaked_rentals_in_few_questions(funded: Own, tmp_path: Path, count: int) -> None:
    """From an empty state directory and the wallet alone; a batch of questions to the chain counts as one."""
    give(funded.lab.facts["chain_url"], funded.lab.folder / "chain", funded.key.address, count * 10**6)
    made = {funded.rent().id for _ in range(count)}
    laptop = funded.lab.laptop(tmp_path / "empty")
    (laptop.state / "wallet.json").write_bytes((funded.laptop.state / "wallet.json").read_bytes())
    empty, began = Own(funded.lab, laptop, funded.password_file), time.monotonic()
    with counting(funded.lab.facts["chain_url"]) as counter:
        empty.settings(rpc=counter.url)
        done = empty.said("end", "--leaked", "--yes", "--unknown-runs", "--json")
    ended = done.tree["ended"]
    asked = counter.requests - counter.sends
    print(f"\n{len(ended)} ended, {counter.sends} sends, {asked} other requests, {time.monotonic() - began:.1f} s")
    assert len(ended) == count and [one["error"] for one in ended] == [None] * count
    assert counter.sends == count and asked <= 60, counter.requests
    assert funded("escrow", "open")["rentals"] == [] and not made & {r.id for r in funded.lab.open_rentals()}
    for one in ended:
        rows = laptop.rows(one["run"])
        assert [e.kind.value for e in rows if e.deed.step == "end"] == ["intended", "done"] and owed(rows) == ()


def test_ended_by_the_wallet_in_the_browser(funded: Own) -> None:
    """The key stays there; this machine's wallet, the lab's here, pays the gas."""
    rental, key = funded.rent(), funded.laptop.folder / "browser.key"
    key.touch(0o600)
    key.write_text(bytes(Account.decrypt(json.loads((funded.laptop.state / "wallet.json").read_text()), PASSWORD)).hex())
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("BROWSER", f"{sys.executable} -m tests.fakes.browser {key} %s")
        done = funded.said("escrow", "end", "--all", "--browser", "--lab", "--yes", "--json")
    assert [(r["id"], r["closed_by"], r["outcome"]) for r in done.tree["ended"]] == [(rental.id, "renter", "ended")]
    assert done.err.count("open this page in the browser that has your wallet: http://127.0.0.1:") == 2


def test_the_labs_own_wallet_and_escrow(own: Own) -> None:
    assert own("wallet", "show", "--lab")["address"] == own.lab.money.renter.address
    checks = own("escrow", "verify", "--lab")["checks"]
    assert {c["word"] for c in checks} == {"passed", "not applicable"} and len(checks) == 7
    assert "open rentals" in own.said("escrow", "open", "--lab").out


def test_deployed_where_it_belongs_and_used_there(funded: Own) -> None:
    """Without `escrow:` the settings mean the address that follows from the code."""
    funded.settings(escrow=None)
    shown = funded("wallet", "show")
    if shown["why"]:
        assert "no contract at" in shown["why"] and shown["locked"] is None
        assert "sealtune escrow deploy" in funded.said("escrow", "open", code=1).err
    done = funded("escrow", "deploy", "--yes")
    assert funded("escrow", "deploy", "--yes")["transaction"] is None
    verified = funded("escrow", "verify")
    assert verified["escrow"] == done["escrow"] and {c["word"] for c in verified["checks"]} == {"passed", "not applicable"}
    assert funded("wallet", "show")["locked"] == "0"


@pytest.mark.parametrize(("changes", "words", "code"), [
    ({"chain_id": 80002, "token": None, "escrow": None}, "is on chain 31337, not 80002", 1),
    ({"chain_id": 1}, "chain 1 is none that sealtune knows", 1),
    ({"token": None}, "`token:` of `open:` is missing", 2),
    ({"token": AMOY.usdc}, "there is no token at", 1),
    ({"rpc": "http://127.0.0.1:9"}, "does not answer", 1),
    ({"rpc": "http://example.com"}, "must be https", 2),
])
def test_settings_that_are_wrong(made: Own, changes: dict[str, Any], words: str, code: int) -> None:
    made.settings(**changes)
    assert words in made.said("wallet", "show", code=code).err


def test_a_list_of_nodes_of_which_one_is_there(funded: Own) -> None:
    funded.settings(rpc=["http://127.0.0.1:9", funded.lab.facts["chain_url"]])
    assert funded("wallet", "show")["usdc"] == "3000000"
    funded.settings(rpc=["http://127.0.0.1:9", "http://localhost:9"])
    assert "chain node 127.0.0.1, localhost does not answer" in funded.said("wallet", "show", code=1).err


def test_polygon_is_opted_into(own: Own) -> None:
    page = own.laptop.write_run(parcels(20), market="open", budget="60.00 USDC")
    own.settings(chain_id=137, token=None, escrow=None)
    assert "has not been audited" in own.said("run", page, "--yes", code=1).err
    own.settings(chain_id=137, token=None, escrow=None, accept_unaudited=True)
    assert "60.00 USDC is above the limit of 50.00 USDC" in own.said("run", page, "--yes", code=1).err
    own.settings(chain_id=137, token=None, escrow=None, accept_unaudited=True, most_deposit="70.00 USDC")
    told = own.said("run", page, "--yes", code=2).err
    assert "real money" in told and "no deposit above 70.00 USDC" in told and "cannot read the wallet" in told


def test_wallets_that_cannot_be_made(made: Own) -> None:
    assert "exists already" in made.said("wallet", "new", code=2).err
    made.settings(keystore="other.json")
    made.password_file.chmod(0o644)
    assert "others may read" in made.said("wallet", "new", "--password-file", made.password_file, code=1).err
    made.password_file.chmod(0o600)
    made.password_file.write_text("short")
    assert "too short" in made.said("wallet", "new", "--password-file", made.password_file, code=2).err
    assert "no terminal" in made.said("wallet", "import", code=1).err
    made.settings(keystore="other.json", password_file=None)
    assert "no terminal" in made.said("wallet", "new", code=1).err
    assert not (made.laptop.state / "other.json").exists()


def test_a_keystore_of_another_tool(made: Own) -> None:
    source = made.laptop.folder / "theirs.json"
    tree = json.loads((made.laptop.state / "wallet.json").read_text())
    source.write_text(json.dumps({**tree, "address": tree["address"].upper()}))
    made.settings(keystore="mine.json")
    taken = made("wallet", "import", source)
    assert taken["address"] == made.key.address
    tree = json.loads((made.laptop.state / "mine.json").read_text())
    tree["address"] = "5e" * 20
    (made.laptop.state / "mine.json").write_text(json.dumps(tree))
    assert "its key is that of" in made.said("wallet", "sweep", "--to", "0x" + "11" * 20, "--yes", code=2).err


def test_a_key_is_typed_unseen(own: Own) -> None:
    key = a_key()
    own.settings(password_file=None)
    seen, code = typed(own.laptop, ["wallet", "import", "--json"], ["0x" + key, PASSWORD, PASSWORD])
    assert code == 0 and Wallet(bytes.fromhex(key)).address in seen and own.key.address == Wallet(bytes.fromhex(key)).address
    assert key not in seen and PASSWORD not in seen


def test_the_person_is_asked_before_money_moves(funded: Own) -> None:
    home, before = "0x" + "5e" * 20, funded("wallet", "show")["usdc"]
    assert "no terminal" in funded.said("wallet", "sweep", "--to", home, code=1).err
    seen, code = typed(funded.laptop, ["wallet", "sweep", "--to", home], ["n"])
    assert code == 1 and "nothing was sent" in seen and str(Money(int(before), USDC)) in seen
    assert funded("wallet", "show")["usdc"] == before


def typed(laptop: Laptop, words: Sequence[str], answers: Sequence[str]) -> tuple[str, int]:
    """A command on a terminal, each answer typed when a question stands there. All that the terminal showed."""
    here, there = pty.openpty()
    process = subprocess.Popen(command(*words), stdin=there, stdout=there, stderr=there, cwd=ROOT, start_new_session=True,
                               env=laptop._environment())
    os.close(there)
    seen, since, left, deadline = "", 0, list(answers), time.monotonic() + PATIENCE
    with contextlib.suppress(OSError):   # the other end is closed: the command has ended
        while time.monotonic() < deadline:
            if select.select([here], [], [], 0.2)[0]:
                seen += os.read(here, 4096).decode(errors="replace")
            if left and re.search(r"(:|\[y/N]) $", seen[since:]):
                since = len(seen)
                os.write(here, (left.pop(0) + "\n").encode())
    os.close(here)
    return seen, process.wait(20)
