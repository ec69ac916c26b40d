"""Nothing in plain on the node, before and after the wipe; another host key ends the run before a byte is sent."""
from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.fakes.labnode import Line
from tests.fakes.rogue import Rogue
from tests.scenario.data import markers, parcels
from tests.scenario.lab import HANGING, Finished, Going, Lab, Laptop, files_of
from tests.scenario.search import secret_needles, seen

pytestmark = pytest.mark.sealed

ROWS = 200


def test_no_row_and_no_key_lies_on_the_node_at_any_moment(lab: Lab, laptop: Laptop) -> None:
    since, before = time.time() - 1, files_of(lab.sandbox)
    page = laptop.write_run(parcels(ROWS), knobs={"rehearsal_steps": 30, "rehearsal_step_seconds": 0.2})
    going = laptop.begin("run", page, "--yes", "--json")
    run = laptop.run_name(going)
    moments, needles = set(), markers(ROWS)
    while going.process.poll() is None:
        needles |= secret_needles(lab, laptop, run)
        assert seen(lab, needles, since) == []
        if rows := laptop.rows(run):
            moments.add(rows[-1].deed.step)
        done = {str(e.deed): e.public for e in rows if e.kind.value == "done"}
        if "whole" not in moments and "lease-1/start" in done and "lease-1/wipe" not in done:
            seal_to = done["run/home key"]["halves"][0]
            assert seen(lab, {"control": seal_to.encode()}, since), "the search sees what does lie there"
            assert seen(lab, needles) == []                    # once every file, however old
            moments.add("whole")
        time.sleep(0.1)
    assert going.ended(0).tree["verdict"] == "verified"
    assert {"start", "whole", "wipe"} <= moments
    assert len([name for name in needles if name.startswith(("lease-1.", "home"))]) >= 6, sorted(needles)
    assert seen(lab, needles) == []
    new = files_of(lab.sandbox) - before
    assert all(name.startswith(".sealtune/public/") for name in new), sorted(new)


def test_after_the_wipe_only_the_listed_public_parts_are_left(lab: Lab, finished: Finished) -> None:
    new = finished.files_after - finished.files_before
    wipe = json.loads(Path(finished.result["report"]).read_text())["predicate"]["wipe"]
    public = [part for part in wipe["document"]["public"] if part["kept"]]
    assert {part["name"] for part in public} == {"environment", "base model"}
    assert all(part["digest"].startswith("sha256:") and part["files"] > 0 for part in public)
    assert sorted(f"{part['name']} {part['digest']}" for part in public) == sorted(wipe["answer"]["kept"])
    assert all(name.startswith(".sealtune/public/") for name in new), sorted(new)
    assert finished.let_in_after == ""
    assert wipe["document"]["inventory"]["after"] == {"bytes": 0, "files": 0}
    removed = {row["path"] for row in wipe["document"]["files"]}
    assert {"dataset.age", "spec.json", "payload.zip", "job/records.jsonl"} <= removed


def test_another_host_key_at_the_first_connection(lab: Lab, laptop: Laptop) -> None:
    """The signed message names one key, another answers: the deposit comes back whole."""
    usdc, rogue = lab.usdc, Rogue()
    try:
        with lab.provider(laptop, node_port=rogue.port):
            going = laptop.begin("run", laptop.write_run(parcels()), "--yes", "--json")
            _ended_by_the_key(laptop, going)
    finally:
        rogue.close()
    assert rogue.heard == [], "somebody tried to log in at an unknown server"
    assert lab.usdc == usdc, "inside the inspection window everything is refunded"


def test_a_host_key_swapped_in_the_middle(lab: Lab, laptop: Laptop, tmp_path: Path) -> None:
    usdc, rogue, line = lab.usdc, Rogue(), Line(lab.node.port)
    try:
        with lab.provider(laptop, node_port=line.port):
            going = laptop.begin("run", laptop.write_run(parcels(), knobs=HANGING), "--yes", "--json")
            laptop.in_training(going)
            line.target = rogue.port
            line.cut()
            _ended_by_the_key(laptop, going)
    finally:
        line.close()
        rogue.close()
    assert rogue.heard == [], "somebody tried to log in at an unknown server"
    assert lab.open_rentals() == []
    assert usdc - lab.usdc < 450_000


def _ended_by_the_key(laptop: Laptop, going: Going) -> None:
    result = going.ended(1).tree
    assert "host key changed: pinned SHA256:" in result["error"]["message"]
    assert result["owed"] == []
    assert int(result["money"]["deposit"]) == sum(int(result["money"][part]) for part in ("paid", "fee", "refunded"))
    left = next(e for e in laptop.rows(result["run"]) if e.deed.step == "left")
    assert left.public["reason"] == "host key changed"
    assert laptop.sealtune("rentals", "--json").tree == {"rentals": [], "error": None}
