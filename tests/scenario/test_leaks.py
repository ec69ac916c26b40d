"""No rental leaks: the laptop dies, goes away on purpose, is interrupted, or is another one altogether."""
from __future__ import annotations

import json
import time
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.scenario.data import parcels
from tests.scenario.lab import HANGING, SLOW, Lab, Laptop, eventually, files_of

pytestmark = pytest.mark.noleak

PER_HOUR = "450000"


def rentals(laptop: Laptop) -> list[dict[str, object]]:
    found: list[dict[str, object]] = laptop.sealtune("rentals", "--json").tree["rentals"]
    return found


def states(laptop: Laptop) -> list[object]:
    return [one["state"] for one in rentals(laptop)]


def killed_in_training(laptop: Laptop, knobs: Mapping[str, object]) -> str:
    """A run whose controller was killed without a word; the job on the node goes on."""
    going = laptop.begin("run", laptop.write_run(parcels(), knobs=knobs), "--yes")
    run = laptop.in_training(going, steps=0 if "rehearsal_hang" in knobs else 2)
    going.kill()
    return run


def test_a_killed_controller_leaks_and_the_leak_is_ended(lab: Lab, laptop: Laptop) -> None:
    usdc, before = lab.usdc, files_of(lab.sandbox)
    run = killed_in_training(laptop, HANGING)
    (rental,) = lab.open_rentals()
    assert usdc - lab.usdc == rental.deposit

    eventually(lambda: states(laptop) == ["leaked"], "the promised contact has passed", 120)
    (one,) = rentals(laptop)
    assert (one["run"], one["per_hour"], one["lease"]) == (run, PER_HOUR, rental.id)
    assert {"lease", "deposit", "data", "process"} <= set(one["owed"])  # type: ignore[call-overload]
    assert one["deposit"] == str(rental.deposit) and 0 < int(str(one["cost_so_far"])) < rental.deposit
    told = laptop.sealtune("rentals")
    assert "leaked" in told.out
    assert "0.45 USDC per hour" in told.out and "so far of 0.45 USDC" in told.out
    assert "sealtune end --leaked" in told.err
    stopping = laptop.sealtune("lab", "down", code=1).err
    assert f"{run} is leaked in the lab, and the lab stops its node: sealtune end --leaked gives it back first" in stopping

    assert laptop.sealtune("end", "--leaked", "--yes", "--json").tree == {"ended": [{"run": run, "error": None}]}
    closed = lab.rental(rental.id)
    assert (closed.status, closed.closed_by) == ("closed", "renter")
    assert closed.refunded == closed.deposit - closed.paid - closed.fee > 0
    assert usdc - lab.usdc == closed.paid + closed.fee
    assert rentals(laptop) == []
    new = files_of(lab.sandbox) - before
    assert all(name.startswith(".sealtune/public/") for name in new), sorted(new)
    checks = laptop.sealtune("audit", run, "--json").tree
    assert checks["verdict"] == "verified", checks
    assert "given up" in laptop.sealtune("resume", run, "--yes", code=1).err


def test_a_killed_controller_is_resumed_and_the_same_run_finishes(lab: Lab, laptop: Laptop) -> None:
    usdc = lab.usdc
    run = killed_in_training(laptop, SLOW)
    (rental,) = lab.open_rentals()
    assert states(laptop) in (["paused"], ["leaked"])
    result = laptop.sealtune("resume", run, "--yes", "--json").tree
    assert (result["run"], result["verdict"], result["owed"]) == (run, "verified", [])
    assert lab.rental(rental.id).status == "closed"
    assert usdc - lab.usdc == int(result["money"]["paid"]) + int(result["money"]["fee"])
    records = [json.loads(line) for line in laptop.sealtune("logs", run, "--json").out.splitlines()]
    assert [int(r["data"]["step"]) for r in records if r["kind"] == "step"] == list(range(1, 25)), "one job, every step once"
    started = [e for e in laptop.rows(run) if e.deed.step == "start" and e.kind.value == "done"]
    assert len(started) == 1


def test_two_resumes_at_once_and_an_end_in_use(lab: Lab, laptop: Laptop) -> None:
    run = killed_in_training(laptop, {**SLOW, "rehearsal_steps": 40})
    first = laptop.begin("resume", run, "--yes", "--json")
    eventually(lambda: laptop.sealtune("status", run, "--json").tree["runs"][0]["state"] == "running", "resumed", 60)
    refused = laptop.sealtune("resume", run, "--yes", code=11)
    assert f"run {run} is in use by process {first.process.pid}" in refused.err
    assert states(laptop) == ["in use"]
    laptop.sealtune("end", run, "--yes", code=11)
    assert laptop.sealtune("end", "--leaked", "--yes", "--json").tree == {"ended": []}
    logs = laptop.begin("logs", "-f", run)
    assert first.ended(0).tree["verdict"] == "verified"
    assert "phase      done" in logs.ended(0).out


def test_ctrl_c_stops_and_gives_everything_back(lab: Lab, laptop: Laptop) -> None:
    usdc = lab.usdc
    going = laptop.begin("run", laptop.write_run(parcels(), knobs=HANGING), "--yes", "--on-interrupt", "stop")
    run = laptop.in_training(going)
    going.interrupt()
    eventually(lambda: "wiping the node" in going.said(), "the release began")
    going.interrupt()                    # a double tap
    done = going.ended(130)
    assert "still open, lease-1: a rented node" in done.err
    assert "everything is being given back; Ctrl-C again leaves the rest for later" in done.err
    assert "everything acquired was given back" in done.err
    assert lab.open_rentals() == []
    assert 0 < usdc - lab.usdc < 450_000
    assert rentals(laptop) == []
    assert laptop.sealtune("audit", run, "--json").tree["verdict"] == "verified"


def test_who_insists_on_leaving_learns_what_still_bills(lab: Lab, laptop: Laptop) -> None:
    going = laptop.begin("run", laptop.write_run(parcels(), knobs=HANGING), "--yes", "--json", "--on-interrupt", "stop")
    run = laptop.in_training(going)
    going.interrupt()
    eventually(lambda: "stopping the job" in going.said(), "the release began")
    for _ in range(2):
        going.interrupt()
        time.sleep(0.3)
    done = going.ended(5)
    assert f"sealtune end {run}" in done.tree["error"]["hint"] and "deposit of lease-1" in done.tree["error"]["message"]
    assert done.tree["money"]["deposit"] == "450000" and done.tree["money"]["refunded"] is None
    laptop.sealtune("end", run, "--yes")
    assert lab.open_rentals() == []


def test_ctrl_c_waits_when_told_to(lab: Lab, laptop: Laptop) -> None:
    page = laptop.write_run(parcels(), knobs={**SLOW, "rehearsal_steps": 10})
    going = laptop.begin("run", page, "--yes", "--json", "--on-interrupt", "wait")
    laptop.in_training(going, steps=2)
    going.interrupt()
    assert going.ended(0).tree["verdict"] == "verified"


def test_ctrl_c_before_money_moved_just_stops(lab: Lab, laptop: Laptop) -> None:
    sent = lab.sent
    going = laptop.begin("run", laptop.write_run(parcels(40_000)), "--yes", "--on-interrupt", "detach")
    eventually(lambda: "checking the data" in going.said(), "the run began", 120)
    going.interrupt()
    going.ended(130)
    assert lab.sent == sent


def test_a_detached_run_is_healthy_and_resumed(lab: Lab, laptop: Laptop) -> None:
    going = laptop.begin("run", laptop.write_run(parcels(), knobs=SLOW), "--yes", "--on-interrupt", "detach")
    run = laptop.in_training(going, steps=2)
    going.interrupt()
    done = going.ended(0)
    assert "0.45 USDC per hour" in done.err
    assert f"sealtune resume {run}" in done.err
    assert "deposit 0.45 USDC, not settled yet" in done.out and "the node goes on" in done.out
    stopping = laptop.sealtune("lab", "down", code=1).err
    assert f"{run} is detached in the lab, and the lab stops its node: its work on the node is lost" in stopping
    assert "--yes" in stopping
    asked = laptop.sealtune("end", run, code=1).err
    assert f"{run} is detached: ending it loses its work on the node" in asked and "--yes" in asked
    laptop.set(contact_seconds=1)        # its contact is long overdue now, and yet it is not leaked
    assert states(laptop) == ["detached"]
    assert laptop.sealtune("end", "--leaked", "--yes", "--json").tree == {"ended": []}
    (rental,) = lab.open_rentals()
    assert rental.status == "active"
    result = laptop.sealtune("resume", run, "--yes", "--json").tree
    assert (result["run"], result["verdict"], result["owed"]) == (run, "verified", [])


def test_an_empty_laptop_with_the_same_wallet_ends_what_it_does_not_know(lab: Lab, laptop: Laptop, tmp_path: Path) -> None:
    usdc = lab.usdc
    killed_in_training(laptop, HANGING)
    (rental,) = lab.open_rentals()
    other = lab.laptop(tmp_path / "other", contact_seconds=1)
    (one,) = rentals(other)
    assert (one["state"], one["lease"], one["per_hour"]) == ("unknown", rental.id, PER_HOUR)

    left = other.sealtune("end", "--leaked", "--yes")
    assert "may be healthy on another laptop" in left.err
    assert "--unknown-runs" in left.err
    assert [r.id for r in lab.open_rentals()] == [rental.id]

    ended = other.sealtune("end", "--leaked", "--yes", "--unknown-runs", "--json")
    assert [e["error"] for e in ended.tree["ended"]] == [None]
    assert "cannot wipe it: no key here" in ended.err
    closed = lab.rental(rental.id)
    assert (closed.status, closed.closed_by) == ("closed", "renter")
    assert usdc - lab.usdc == closed.paid + closed.fee
    assert rentals(other) == []
    eventually(lambda: lab.let_in() == "", "the provider locks the renter out", 60)


@pytest.mark.full
def test_the_laptop_whose_lease_was_ended_elsewhere_settles_its_books(lab: Lab, laptop: Laptop, tmp_path: Path) -> None:
    run = killed_in_training(laptop, HANGING)
    other = lab.laptop(tmp_path / "other", contact_seconds=1)
    other.sealtune("end", "--leaked", "--yes", "--unknown-runs")
    eventually(lambda: not lab.of_renter(), "the renter's processes are ended", 60)
    laptop.set(contact_seconds=1)
    first = laptop.sealtune("end", "--leaked", "--yes", "--json", code=3)
    assert "given up on the node: stop of lease-1, wipe of lease-1" in first.err
    assert first.tree == {"ended": [{"run": run, "error": None}]}
    assert rentals(laptop) == []
