"""A run of one's own in the lab, from the run file to the signed report, as the command line tells it."""
from __future__ import annotations

import json
from pathlib import Path

import pytest

from orchestrator.cli.shapes import SHAPES
from orchestrator.steps import BACKWARD, FORWARD, OF_A_BUDGET, OF_THE_RUN
from tests.fakes.shapes import misfits
from tests.scenario.lab import Finished, Lab

pytestmark = pytest.mark.journey


def test_the_result_has_every_key(finished: Finished) -> None:
    result = finished.result
    assert misfits(SHAPES["run"], result) == []
    assert (result["verdict"], result["owed"], result["error"]) == ("verified", [], None)
    known = {step.name for step in (*OF_THE_RUN, *OF_A_BUDGET, *FORWARD, *BACKWARD)}
    assert {stage["name"] for stage in result["stages"]} <= known
    assert {"check", "open", "meet", "challenge", "ship", "start", "collect", "wipe", "end", "settle"} <= {
        stage["name"] for stage in result["stages"]}
    assert all(stage["seconds"] >= 0 for stage in result["stages"])


def test_the_money_adds_up_on_the_chain_too(lab: Lab, finished: Finished) -> None:
    money = {name: int(value) for name, value in finished.result["money"].items() if name != "token"}
    assert finished.result["money"]["token"] == "USDC"
    assert money["deposit"] == money["paid"] + money["fee"] + money["refunded"]
    assert money["paid"] > 0 < money["refunded"]
    assert money["gas_native"] > 0
    assert finished.usdc_before - finished.usdc_after == money["paid"] + money["fee"]
    rental = lab.rental(lease_of(finished))
    assert (rental.status, rental.closed_by, rental.outcome) == ("closed", "renter", "ended")
    assert (rental.deposit, rental.paid, rental.fee, rental.refunded) == (
        money["deposit"], money["paid"], money["fee"], money["refunded"])


def test_the_end_on_the_chain_carries_the_reports_digest(lab: Lab, finished: Finished) -> None:
    rows = finished.laptop.rows(finished.run)
    sealed = next(e for e in rows if str(e.deed) == "lease-1/report" and e.kind.value == "done")
    assert lab.rental(lease_of(finished)).report_digest.removeprefix("0x") == sealed.public["anchor"].removeprefix("sha256:")


def test_all_five_hundred_rows_were_used(finished: Finished) -> None:
    report = json.loads(Path(finished.result["report"]).read_text())
    data = report["predicate"]["run"]["dataset"]
    assert data["rows"] == 500
    assert data["train"] + data["held_out"] == 500
    assert data["held_out"] > 0


def test_the_adapter_is_where_the_run_file_says(finished: Finished) -> None:
    folder = Path(finished.result["adapter"])
    assert folder.resolve() == (finished.laptop.folder / "work" / "adapter").resolve()
    config = json.loads((folder / "adapter_config.json").read_text())
    assert (config["peft_type"], config["r"]) == ("LORA", 8)
    assert (folder / "adapter_model.safetensors").stat().st_size > 0


def test_afterwards_nothing_is_open(finished: Finished) -> None:
    laptop, run = finished.laptop, finished.run
    assert laptop.sealtune("rentals", "--json").tree == {"rentals": [], "error": None}
    assert "no open rentals" in laptop.sealtune("rentals").out
    (one,) = laptop.sealtune("status", run, "--json").tree["runs"]
    assert (one["run"], one["state"], one["owed"]) == (run, "done", [])
    assert run in laptop.sealtune("status").out
    assert "nothing leaked" in laptop.sealtune("end", "--leaked", "--yes").err


def test_the_keys_of_the_run_are_gone(finished: Finished) -> None:
    assert finished.laptop.secrets(finished.run) == {}
    assert not list(finished.home.glob("lease-*/spool/*"))
    assert finished.home.stat().st_mode & 0o077 == 0


def test_the_logs_tell_the_training(finished: Finished) -> None:
    lines = finished.laptop.sealtune("logs", finished.run, "--json").out.splitlines()
    records = [json.loads(line) for line in lines]
    assert [r["seq"] for r in records] == list(range(1, len(records) + 1))
    assert [int(r["data"]["step"]) for r in records if r["kind"] == "step"] == list(range(1, 13))
    told = finished.laptop.sealtune("logs", "-f", finished.run).out
    assert len(told.splitlines()) == len(records)
    assert "loss" in told


def test_a_finished_run_can_be_resumed_and_nothing_happens(lab: Lab, finished: Finished) -> None:
    before, rows = lab.sent, len(finished.laptop.rows(finished.run))
    again = finished.laptop.sealtune("resume", finished.run, "--yes", "--json").tree
    assert again == finished.result
    assert (lab.sent, len(finished.laptop.rows(finished.run))) == (before, rows)


def lease_of(finished: Finished) -> str:
    rows = finished.laptop.rows(finished.run)
    opened = next(e for e in rows if str(e.deed) == "lease-1/open" and e.kind.value == "done")
    return str(opened.public["lease_id"])
