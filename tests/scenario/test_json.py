"""What every command prints with `--json` is what orchestrator/cli/shapes says, no key more and none less."""
from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from orchestrator.cli.shapes import SHAPES, Failed
from orchestrator.lab import task
from tests.fakes.labchain import a_key, a_word, an_access_hash
from tests.fakes.outbox import MemoryOutbox
from tests.fakes.shapes import misfits
from tests.scenario.lab import Finished, Lab, Laptop
from tests.scenario.test_journey import lease_of

pytestmark = pytest.mark.journey

RUN, RENTAL, OWN = "RUN", "RENTAL", "own.yaml"
LOOKED_AT = {                            # at a finished run, a lab that runs, and files of one's own
    "advise": ("--dataset", "visits.jsonl", "--yes"), "init": ("visits.yaml", "--dataset", "visits.jsonl", "--yes"),
    "plan": (OWN,), "data check": ("visits.jsonl", "--test", "visits.jsonl"), "resume": (RUN, "--yes"), "status": (),
    "rentals": (), "audit": (RUN,), "escrow show": (RENTAL, "--lab"), "escrow verify": ("--lab",), "lab status": (),
    "lab up": ()}
SENT = ("wallet new", "wallet import", "wallet show", "wallet fund", "escrow open", "escrow end", "escrow deploy",
        "wallet sweep")
APART = ("run", "logs", "demo", "end", "lab down")


def holds(command: str, tree: Any) -> Any:
    assert misfits(SHAPES[command], tree) == [], command
    return tree


def test_every_command_is_held_to_its_shape() -> None:
    assert {*LOOKED_AT, *SENT, *APART} == set(SHAPES)


@pytest.mark.parametrize("command", LOOKED_AT)
def test_a_command_that_looks(command: str, finished: Finished, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task.write(tmp_path / "visits.jsonl", rows=60)
    monkeypatch.chdir(tmp_path)
    meant = {RUN: finished.run, RENTAL: lease_of(finished), OWN: str(finished.laptop.folder / "work" / OWN)}
    words = [meant.get(word, word) for word in LOOKED_AT[command]]
    holds(command, finished.laptop.here(*command.split(), *words, "--json").tree)


@pytest.mark.data
def test_a_dataset_that_is_faulty_and_one_whose_rows_are_not_shown(finished: Finished, tmp_path: Path) -> None:
    task.write(tmp_path / "visits.jsonl", rows=60)
    (tmp_path / "broken.jsonl").write_bytes((tmp_path / "visits.jsonl").read_bytes() + b"{\n")
    check = ("data", "check", "--json", "--model", "sealtune-lab/tiny-llama")
    tree = holds("data check", finished.laptop.here(*check, "--no-rows", tmp_path / "visits.jsonl").tree)
    assert tree["preview"] is tree["topics"] is tree["leakage"] is None
    faulty = holds("data check", finished.laptop.here(*check, tmp_path / "broken.jsonl", code=2).tree)
    assert faulty["verdict"] == "faulty" and faulty["split"] is None


def test_a_run_its_records_and_what_cannot_be_found(finished: Finished) -> None:
    holds("run", finished.result)
    for line in finished.laptop.here("logs", finished.run, "--json").out.splitlines():
        holds("logs", json.loads(line))
    for words in (["status", "none"], ["plan", "none.yaml"], ["data", "check"]):
        failed = finished.laptop.sealtune(*words, "--json", code=10 if words[0] == "status" else 2).tree
        assert misfits(Failed, failed) == []


def test_a_demo_that_is_ended_and_a_lab_that_is_not_there(lab: Lab, laptop: Laptop, tmp_path: Path) -> None:
    run = holds("demo", laptop.here("demo", "--engine", "rehearsal", "--json").tree)["run"]
    holds("status", laptop.here("status", run, "--json").tree)
    assert holds("end", laptop.here("end", run, "--yes", "--json").tree)["ended"]
    other = Laptop(tmp_path / "other")
    assert holds("lab down", other.here("lab", "down", "--json").tree) == {"stopped": False}
    assert holds("lab status", other.here("lab", "status", "--json").tree)["lab"] is None


@pytest.mark.money
def test_the_commands_of_wallet_and_escrow(lab: Lab, laptop: Laptop, monkeypatch: pytest.MonkeyPatch) -> None:
    (laptop.folder / "word").touch(0o600)
    (laptop.folder / "word").write_text("correct horse\n")

    def said(command: str, *words: str | Path) -> Any:
        return holds(command, laptop.here(*command.split(), *words, "--json").tree)

    made = said("wallet new", "--password-file", laptop.folder / "word")
    Path(made["keystore"]).rename(laptop.folder / "other.json")
    said("wallet import", laptop.folder / "other.json", "--password-file", laptop.folder / "word")
    rental = rent(lab)
    assert any(one["state"] == "unknown" for one in said("rentals")["rentals"])
    assert said("wallet show", "--lab")["open_rentals"]
    assert rental in [one["id"] for one in said("escrow open", "--lab")["rentals"]]
    assert said("escrow end", "--all", "--lab", "--yes")["ended"]
    said("escrow deploy", "--lab", "--yes")
    assert said("wallet sweep", "--lab", "--yes", "--to", "0x5aAeb6053F3E94C9b9A09f33669435E7Ef1BeAed")["transactions"]
    said("wallet fund", "--lab", "--give", "--budget", "1000USDC")


def rent(lab: Lab) -> str:
    """A rental of the lab's renter that no journal knows; its id."""
    escrow = lab.money.escrow(MemoryOutbox())
    rental = escrow.create(a_key(), *lab.money.quote(renter=lab.money.renter.address), 600, 10**9, an_access_hash())
    lab.money.act(lab.money.provider, "activate", rental.id, a_word())
    return rental.id
