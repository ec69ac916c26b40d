"""What a person, a market, a chain or a node gets wrong: a clear message, a next step, the right exit code; before money
moves wherever that can be, and otherwise everything that was acquired is given back.
"""
from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eth_account import Account

from orchestrator.lab import node as lab_node
from tests.scenario.data import parcels
from tests.scenario.lab import FAST, Done, Lab, Laptop, eventually

pytestmark = pytest.mark.journey

ROW = parcels(1)[0]
Page = Callable[[Laptop], Path]


def page(**fields: Any) -> Page:
    return lambda laptop: laptop.write_run(parcels(), **fields)


def raw(text: str) -> Page:
    return lambda laptop: laptop.write_page("own.yaml", text)


def rows(*lines: Any) -> Page:
    """The data as it stands in the file, after three good rows."""
    def write(laptop: Laptop) -> Path:
        path = laptop.write_run(parcels(3))
        with path.with_suffix(".jsonl").open("ab") as file:
            file.write(b"".join(line if isinstance(line, bytes) else json.dumps(line).encode() + b"\n" for line in lines))
        return path
    return write


WRITTEN: list[tuple[str, Page, int, str]] = [
    ("malformed", raw("model: x/y\n  dataset: [\n"), 2, r"own\.yaml:2: not valid YAML"),
    ("not a page", raw("- one\n- two\n"), 2, r"own\.yaml:1: fields are needed"),
    ("no such run file", lambda laptop: laptop.folder / "work" / "none.yaml", 2, r"none\.yaml: no such file"),
    ("unknown field", page(datset="x"), 2, r"datset: unknown field.*\n.*did you mean `dataset`"),
    ("unknown knob", page(knobs={"learning_rte": 1}), 2, r"training\.learning_rte: unknown field.*\n.*`learning_rate`"),
    ("wrong market", page(market="opne"), 2, r"market: must be one of.*\n.*did you mean `open`"),
    ("wrong engine", page(engine="tlr", knobs={}), 2, r"engine: must be one of.*\n.*did you mean `trl`"),
    ("money as a number", page(budget=8), 2, r"budget: must be text with its currency"),
    ("no budget", page(budget=None), 2, r"budget is missing\n.*add a line"),
    ("unknown model", page(model="sealtune-lab/none"), 2,
     r"sealtune-lab/none is not on the hub.*\n.*has only sealtune-lab/tiny-llama"),
    ("unknown revision", page(revision="nope"), 2, r"has no revision nope\n.*hint: name a branch"),
    ("missing dataset", page(dataset="gone.jsonl"), 2, r"gone\.jsonl: no such file.*\n.*hint: "),
    ("broken line", rows(b'{"messages": [\n', ROW), 2, r"own\.jsonl:4:\d+: not JSON.*\n.*hint: "),
    ("line without words", rows(ROW, {"messages": []}), 2, r"own\.jsonl:5:\d+: .*\n.*hint: "),
    ("not UTF-8", rows(b'{"text": "\xff"}\n'), 2, r"own\.jsonl:4:\d+: .*\n.*hint: "),
    ("empty dataset", lambda laptop: laptop.write_run([]), 2, r"own\.jsonl: .*\n.*hint: "),
    ("budget too small", page(budget="0.10 USDC"), 1,
     r"budget 0\.10 USDC is below 1 hour of the cheapest fitting offer: 0\.45 USDC\n.*raise `budget:`"),
    ("too short", page(hours=0.1), 1, r"6 minutes of lab-1 .* too short for a run\n.*allow at least 20 minutes"),
    ("no such hardware", page(node={"gpu": ["H100"]}), 1, r"lab-1: Simulated RTX 4090 is not H100\n.*widen `node:`"),
    ("output is taken", page(output="."), 2, r"output .* is there already and not of this run\n.*hint: "),
]


@pytest.mark.parametrize(("write", "code", "says"), [case[1:] for case in WRITTEN], ids=[case[0] for case in WRITTEN])
def test_what_is_wrong_is_said_before_money_moves(lab: Lab, laptop: Laptop, write: Page, code: int, says: str) -> None:
    sent, usdc = lab.sent, lab.usdc
    done = laptop.sealtune("run", write(laptop), "--yes", code=code)
    plain(done, says)
    assert "never came to rent anything" in laptop.sealtune("status").err or not laptop.runs
    assert (lab.sent, lab.usdc) == (sent, usdc), "a transaction was sent"


def test_without_a_terminal_nobody_can_agree(lab: Lab, laptop: Laptop) -> None:
    sent = lab.sent
    done = laptop.sealtune("run", page()(laptop), code=1)
    plain(done, r"there is no terminal to ask on\n.*--yes")
    for words in ("0.45 USDC per hour", "deposit     0.45 USDC", "fee         at most", "gas         about",
                  "worst case  0.45 USDC", "the operator of this machine can read your data"):
        assert words in done.err
    assert lab.sent == sent


def test_a_strangers_machine_needs_the_sentence(lab: Lab, laptop: Laptop) -> None:
    """--yes alone is not enough."""
    sent, run_file = lab.sent, as_a_stranger(lab, laptop)
    plain(laptop.sealtune("run", run_file, "--yes", code=1), r"needs --i-understand-operator-can-read\n.*policy:")
    assert lab.sent == sent


@pytest.mark.full
def test_with_the_sentence_a_strangers_machine_serves(lab: Lab, laptop: Laptop) -> None:
    run_file = as_a_stranger(lab, laptop)
    done = laptop.sealtune("run", run_file, "--yes", "--i-understand-operator-can-read", "--json").tree
    assert (done["verdict"], done["owed"]) == ("verified", [])


def as_a_stranger(lab: Lab, laptop: Laptop) -> Path:
    """The lab's provider as an open market of the settings, with a keystore and its password in files; a run file for it."""
    facts, money = lab.facts, lab.facts["money"]
    key = bytes.fromhex(Path(money["renter_key"]).read_text().strip().removeprefix("0x"))
    (laptop.state / "wallet.json").write_text(json.dumps(Account.encrypt(key, "correct horse", kdf="scrypt", iterations=2)))
    (laptop.state / "password").write_text("correct horse\n")
    (laptop.state / "password").chmod(0o600)
    laptop.set(hub=facts["hub_url"], open={
        "url": facts["provider_url"], "rpc": facts["chain_url"], "chain_id": money["chain_id"], "escrow": money["escrow"],
        "token": money["token"], "keystore": "wallet.json", "password_file": "password"})
    return page(market="open")(laptop)


NOBODY = pytest.mark.parametrize(("part", "says"), [
    ("provider_url", r"the market at http://127\.0\.0\.1:{port} did not answer"),
    ("chain_url", r"chain node 127\.0\.0\.1 does not answer"), ("hub_url", r"127\.0\.0\.1:{port}")],
    ids=["market", "chain", "hub"])


@NOBODY
def test_somebody_who_does_not_answer_is_named_at_once(lab: Lab, laptop: Laptop, part: str, says: str) -> None:
    """The run waits a while, since nothing is lost; the person hears of it and may go."""
    sent, port = lab.sent, lab_node.free_port()
    lab.lead(laptop, **{part: f"http://127.0.0.1:{port}"})
    going = laptop.begin("run", page()(laptop), "--yes")
    eventually(lambda: re.search(f"{says.format(port=port)}.*; trying again", going.said()), "it is said", 60)
    going.interrupt()
    going.ended(130)
    assert lab.sent == sent


@pytest.mark.full
@NOBODY
def test_somebody_who_never_answers(lab: Lab, laptop: Laptop, part: str, says: str) -> None:
    sent, port = lab.sent, lab_node.free_port()
    lab.lead(laptop, **{part: f"http://127.0.0.1:{port}"})
    done = laptop.sealtune("run", page()(laptop), "--yes", code=1)
    plain(done, says.format(port=port))
    assert lab.sent == sent


def test_hardware_that_is_not_as_offered_is_left_and_paid_back(lab: Lab, laptop: Laptop) -> None:
    usdc = lab.usdc
    with lab.provider(laptop, offer={"ram_mib": 8_000_000}):
        result = laptop.sealtune("run", page()(laptop), "--yes", "--json", code=4).tree
    assert "hardware not as offered" in result["error"]["message"]
    assert result["owed"] == []
    assert (result["money"]["paid"], result["money"]["fee"]) == ("0", "0")
    assert result["money"]["deposit"] == result["money"]["refunded"]
    assert lab.usdc == usdc
    opened = next(e for e in laptop.rows(result["run"]) if e.deed.step == "open" and e.kind.value == "done")
    assert lab.rental(opened.public["lease_id"]).outcome == "rejected"


def test_an_adapter_that_does_not_verify_is_not_taken(lab: Lab, laptop: Laptop) -> None:
    knobs = {**FAST, "target_modules": ["no_such_module"]}
    result = released(lab, laptop, page(knobs=knobs)(laptop))
    assert "the adapter that came back does not verify" in result["error"]["message"]
    assert result["adapter"] is None
    assert not list((laptop.folder / "work" / "adapters").glob("*"))


@pytest.mark.full
def test_a_training_that_fails_is_told_and_given_back(lab: Lab, laptop: Laptop) -> None:
    result = released(lab, laptop, page(knobs={**FAST, "rehearsal_fail": 1})(laptop))
    assert "training ended as failed" in result["error"]["message"]
    assert "RehearsedFault" in laptop.sealtune("logs", result["run"]).out


def released(lab: Lab, laptop: Laptop, run_file: Path) -> dict[str, Any]:
    """The result of a run that fails on the node: exit 1, the node wiped, the rest of the deposit back."""
    usdc = lab.usdc
    result: dict[str, Any] = laptop.sealtune("run", run_file, "--yes", "--json", code=1).tree
    money = {name: int(value) for name, value in result["money"].items() if name != "token"}
    assert [one for one in result["owed"] if not one.startswith("run/")] == []
    assert money["deposit"] == money["paid"] + money["fee"] + money["refunded"]
    assert usdc - lab.usdc == money["paid"] + money["fee"] < 450_000
    assert "wipe" in {stage["name"] for stage in result["stages"]}
    return result


def plain(done: Done, says: str) -> None:
    """Lower case after the program's name, no full stop, no traceback, and a next step."""
    assert re.search(says, done.err), done.err
    (message,) = [line for line in done.err.splitlines() if line.startswith("sealtune: ")]
    assert not message.endswith("."), message
    assert "Traceback" not in done.err
    assert "\nhint: " in done.err, done.err
