"""The wipe: what it removes, what it finds, what it says, and that it goes on after any cut."""
from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.document import canonical, sha256
from remote_payload import media, scan, wipe, wipe_document
from remote_payload.overwrite import destroy
from remote_payload.workspace import Workspace
from tests.payload.rental import JOB, NONCE, Lease
from tests.payload.talk import LEASE, LOCK, OTHER_LEASE, Node, Refused, a_node, lives, until

pytestmark = pytest.mark.sealed
CANARY = "canary-" + os.urandom(12).hex()      # made here, so that no file of this repository holds it


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with a_node(tmp_path / "home") as node:
        yield node


def test_after_a_whole_run_nothing_is_left(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    lease.start()
    assert lease.follow()[0] == "done"
    header, document = lease.wipe(canaries=CANARY.encode())
    assert header["outcome"] == "complete" and header["leftovers"] == header["hits"] == 0
    assert header["decoy_found"] is True and header["kept"] == []
    assert not (node.home / ".sealtune").exists()

    keeper = node.keeper_seen()
    assert lives(keeper)
    again = lease.wipe(node.connect(), canaries=CANARY.encode())
    assert again == (header, document)
    lease.agent.ask("bye")
    until(lambda: not lives(keeper), 20)


def test_the_document_says_what_was_done(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    lease.start()
    lease.follow()
    sealed = {path.name: sha256(path.read_bytes()) for path in node.place.private.rglob("*.age")}
    order = {"order_id": "w", "keep": [], "seconds": 20, "nonce": NONCE}
    reply = lease.agent.ask("wipe", {"order": order}, CANARY.encode())
    document = json.loads(reply.body)
    assert canonical(document) == reply.body and sha256(reply.body) == reply.header["sha256"]
    assert document["schema"] == "sealtune/wipe/1" and document["lease"] == LEASE and document["nonce"] == NONCE
    assert document["job"] == {"id": JOB, "how": "done"}
    rows = {Path(row["path"]).name: row for row in document["files"]}
    assert {"adapter.age", "evaluation.age", "dataset.age"} <= set(sealed)
    for name, digest in sealed.items():
        assert rows[name]["sha256"] == digest and rows[name]["outcome"] == "removed" and rows[name]["readback"]
    assert rows["dataset.age"]["role"] == "data" and rows["adapter.age"]["role"] == "result"
    assert {"payload.zip", "spec.json", "records.jsonl", "status.json", "lease.json", "keeper.json"} <= set(rows)
    assert document["files_total"] == len(document["files"]) and document["inventory"]["before"]["files"] == len(
        [row for row in document["files"] if row["outcome"] != "removed by the job"])
    assert document["inventory"]["after"] == {"files": 0, "bytes": 0} and document["files_not_listed"] == 0
    before, after = document["scans"]
    assert before["decoy_found"] and not after["decoy_found"] and document["decoy"] == {
        "planted": True, "found": True, "gone": True}
    assert all(row["complete"] for row in after["roots"] if row["required"])
    assert document["memory"]["vram"] == "not applicable (no GPU)"
    assert {"operator-snapshot", "memory"} <= set(document["caveats"]) and document["not_done"]
    assert str(node.home) not in reply.body.decode()


def test_public_parts_stay_where_the_order_keeps_them(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    unfinished = node.place.public / "env-0000000000000000.part"
    unfinished.mkdir()
    (unfinished / "half").write_text("half")
    a_model(node, "1" * 40)
    a_model(node, "3" * 40)
    (node.place.models / ("3" * 40) / "dump").write_text(CANARY)     # no longer only what its table says
    header, document = lease.wipe(keep=("environment", "base model"), canaries=CANARY.encode())
    assert header["outcome"] == "complete"
    assert [path.name for path in node.place.root.iterdir()] == ["public"]
    assert node.place.environment(sha256(LOCK)).is_dir() and not unfinished.exists()
    assert [kept.split()[-1][:10] for kept in header["kept"]] == ["sha256:222", header["kept"][1].split()[-1][:10]]
    assert {(row["name"], row["kept"]) for row in document["public"]} == {
        ("environment", True), ("base model", True), ("base model", False), ("unfinished", False)}


def a_model(node: Node, commit: str) -> None:
    """A base model as a lease before this one could have left it."""
    folder = node.place.models / commit
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    mark = {"digest": "sha256:" + "2" * 64, "bytes": 2, "files": [["config.json", sha256(b"{}")[7:]]]}
    (node.place.models / (commit + ".json")).write_text(json.dumps(mark))


def test_what_is_not_kept_goes(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    a_model(node, "1" * 40)
    header, document = lease.wipe(keep=("environment",))
    assert header["outcome"] == "complete", document
    assert [kept.split()[0] for kept in header["kept"]] == ["environment"]
    assert not node.place.models.exists()


SPELLINGS = {"plain": f"before {CANARY} after".encode(), "wide": ("x" * 5000 + CANARY).encode("utf-16-le"),
             "across-blocks": b"\0" * ((1 << 20) - 10) + CANARY.encode(), "hex": CANARY.encode().hex().encode(),
             CANARY: b""}


def test_a_canary_elsewhere_is_found(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    place = node.home / "elsewhere"
    place.mkdir()
    for name, content in SPELLINGS.items():
        (place / name).write_bytes(content)
    header, document = lease.wipe(canaries=CANARY.encode())
    names = {"(canary)" if name == CANARY else name for name in SPELLINGS}
    assert set(document["scans"][1]["places"]) == {f"~/elsewhere/{name}" for name in names}
    assert CANARY not in json.dumps(document)
    assert header["outcome"] == "partial" and header["hits"] == len(SPELLINGS) and header["leftovers"] == 0
    assert not list(node.place.private.rglob("*.age"))

    for name in SPELLINGS:
        (place / name).unlink()
    keeper = node.keeper_seen()
    header, document = lease.wipe(node.connect(), canaries=CANARY.encode())
    assert header["outcome"] == "complete" and header["hits"] == 0 and lives(keeper)
    assert {"dataset.age", "payload.zip"} <= {row["path"] for row in document["files"]}
    assert not (node.home / ".sealtune").exists()


def test_a_canary_in_our_own_folder_is_seen_before_and_gone_after(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    (node.place.job / "dump").write_text(CANARY)
    header, document = lease.wipe(canaries=CANARY.encode())
    assert header["outcome"] == "complete" and header["hits"] == 0
    assert document["scans"][0]["hits"] == 1


def test_a_deleted_file_that_is_still_open_is_searched(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    with (node.home / "gone").open("w+") as file:
        file.write(CANARY)
        file.flush()
        (node.home / "gone").unlink()
        header, document = lease.wipe(canaries=CANARY.encode())
    assert header["hits"] == 1 and document["scans"][1]["places"] == ["a deleted file that is still open"]


def test_a_checkpoint_that_the_job_removed_itself_has_a_row(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    lease.start({"rehearsal_steps": "7", "rehearsal_step_seconds": "0.4"}, checkpoints={"every_seconds": 1, "keep": 1})
    published = [r["data"] for r in lease.follow()[1] if r["kind"] == "published"]
    assert len([data for data in published if data["name"].startswith("checkpoint")]) > 1
    _, document = lease.wipe()
    rows = {row["sha256"]: row["outcome"] for row in document["files"]}
    outcomes = [rows[data["sha256"]] for data in published]
    assert set(outcomes) == {"removed", "removed by the job"}
    assert document["files_total"] == len(document["files"]) > document["inventory"]["before"]["files"]


def test_what_a_killed_job_left_in_memory_goes(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    lease.start({"rehearsal_hang": "1"})
    lease.wait_for("phase")
    memory = Path("/dev/shm")
    until(lambda: [path for path in memory.glob("sealtune-*") if str(node.home).encode() in job_of(path)])
    (scratch,) = [path for path in memory.glob("sealtune-*") if str(node.home).encode() in job_of(path)]
    (scratch / "left").write_text("something")
    os.kill(int(scratch.name.split("-")[1]), signal.SIGKILL)
    assert lease.follow()[0] == "failed" and (scratch / "left").exists()
    header, document = lease.wipe()
    assert header["outcome"] == "complete" and not scratch.exists()
    assert "memory/left" in [row["path"] for row in document["files"]]


def job_of(scratch: Path) -> bytes:
    return _words(Path("/proc") / scratch.name.split("-")[1] / "cmdline")


def test_a_running_job_is_ended_first(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    lease.start({"rehearsal_hang": "1"})
    lease.wait_for("phase")
    header, document = lease.wipe()
    assert header["outcome"] == "complete" and document["job"]["how"] == "stopped"
    assert not [path for path in Path("/proc").glob("[0-9]*/cmdline") if str(node.home).encode() in _words(path)]


def _words(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""


@pytest.mark.parametrize("patience", [0.05, 0.6, 1.5])
def test_a_wipe_that_is_cut_goes_on(node: Node, tmp_path: Path, patience: float) -> None:
    lease = Lease(node, tmp_path / "desk")
    for number in range(300):
        (node.place.scratch / f"file-{number}").write_bytes(os.urandom(3000))
    expected = {str(path.relative_to(node.place.private)) for path in node.place.private.rglob("*") if path.is_file()}
    agent = node.connect()
    agent.send(wipe_frame(CANARY))
    time.sleep(patience)
    os.kill(agent.process.pid, signal.SIGKILL)
    header, document = lease.wipe(node.connect(), canaries=CANARY.encode())
    assert header["outcome"] == "complete" and not (node.home / ".sealtune").exists()
    rows = {row["path"]: row["outcome"] for row in document["files"]}
    assert expected <= set(rows) and "left" not in rows.values()


def test_a_wipe_beside_another_waits_for_it_and_says_the_same(node: Node, tmp_path: Path) -> None:
    """A line that was cut: its agent may still be wiping when the next one is asked to."""
    lease = Lease(node, tmp_path / "desk")
    for number in range(300):
        (node.place.scratch / f"file-{number}").write_bytes(os.urandom(3000))
    first = node.connect()
    first.send(wipe_frame(CANARY))
    until(lambda: (node.place.private / "wipe.json").exists(), 20)
    header, document = lease.wipe(node.connect(), canaries=CANARY.encode())
    assert header["outcome"] == "complete" and not (node.home / ".sealtune").exists()
    assert header["files"] > 300 and "left" not in {row["outcome"] for row in document["files"]}


def wipe_frame(canary: str) -> bytes:
    from orchestrator.node.frames import Frame, Verb, encode
    order = {"order_id": "wipe-1", "keep": [], "seconds": 20, "nonce": NONCE}
    return encode(Frame(Verb.WIPE, {"order": order}, canary.encode()))


def test_a_wipe_whose_keeper_died_has_one_again(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    first = node.keeper()
    os.kill(first, signal.SIGKILL)
    until(lambda: not lives(first), 20)
    header, document = lease.wipe()
    assert header["outcome"] == "complete" and not (node.home / ".sealtune").exists()
    assert lease.wipe(node.connect()) == (header, document)
    lease.agent.ask("bye")


def test_time_that_runs_out_is_said(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    order = wipe.Order("w", [], 5, "n", [])
    order.deadline = time.monotonic() - 1
    header, _ = wipe.Wipe(node.place, order, lambda *_: None, lambda: None).run()
    assert header["outcome"] == "interrupted" and header["leftovers"] > 0
    assert (node.place.private / "dataset.age").exists()
    assert lease.wipe()[0]["outcome"] == "complete"


def test_a_wipe_of_nothing_says_that_there_was_nothing(node: Node) -> None:
    agent = node.connect()
    order = {"order_id": "w", "keep": [], "seconds": 10, "nonce": NONCE}
    header = agent.ask("wipe", {"order": order}).header
    assert header["outcome"] == "complete" and header["files"] <= 3     # our own notes and the decoy
    assert not (node.home / ".sealtune").exists()
    agent.ask("bye")


def test_after_a_wipe_a_new_lease_begins_from_nothing(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    lease.wipe(keep=("environment",))
    other = node.connect(lease=OTHER_LEASE)
    assert other.ask("hello", {"protocol": 1, "lease": OTHER_LEASE}).header["keeper"] is None
    again = node.connect()
    again.ask("arm", {"seconds": 60, "silence": 60, "self_end": []})
    node.keeper()
    assert node.install(again)["packages"] == 1
    with pytest.raises(Refused, match="unknown-job"):
        lease.follow(again)


@pytest.mark.parametrize("order", [
    {}, {"order_id": "w", "keep": ["data"], "seconds": 10, "nonce": NONCE},
    {"order_id": "", "keep": [], "seconds": 1, "nonce": NONCE},
    {"order_id": "w", "keep": [], "seconds": -1, "nonce": NONCE}, {"order_id": "w", "keep": [], "seconds": 1, "nonce": 5}])
def test_an_order_that_cannot_be_touches_nothing(node: Node, tmp_path: Path, order: dict[str, Any]) -> None:
    lease = Lease(node, tmp_path / "desk")
    with pytest.raises(Refused, match="bad-request"):
        lease.agent.ask("wipe", {"order": order})
    assert (node.place.private / "dataset.age").exists()


def test_canaries_too_short_to_mean_anything_are_refused(node: Node) -> None:
    order = {"order_id": "w", "keep": [], "seconds": 10, "nonce": NONCE}
    for canaries in (b"short", b"x" * 300, b"\n".join(b"canary-%d" % n for n in range(17))):
        with pytest.raises(Refused, match="bad-request"):
            node.connect().ask("wipe", {"order": order}, canaries)


def test_a_wipe_says_how_far_it_is(tmp_path: Path) -> None:
    said: list[tuple[int, int, str]] = []
    place = Workspace(tmp_path, OTHER_LEASE)
    place.create()
    for number in range(5):
        (place.scratch / f"file-{number}").write_bytes(b"x")
    order = wipe.Order("w", [], 30, NONCE, [b"canary-0001"])
    wipe.Wipe(place, order, lambda done, of, what: said.append((done, of, what)), lambda: None).run()
    wiping = [(done, of) for done, of, what in said if what == "wiping files"]
    assert wiping == [(n, 7) for n in range(1, 8)], "five files, the lease's own note and the decoy"
    assert list(dict.fromkeys(what for _, _, what in said)) == [
        "stopping the job", "scanning files", "wiping files", "writing the evidence"]


# ---- the pieces -------------------------------------------------------------------------------------------------


def test_links_are_removed_and_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"untouched")
    (tmp_path / "link").symlink_to(victim)
    assert destroy(tmp_path / "link") is False and victim.read_bytes() == b"untouched"
    assert not (tmp_path / "link").is_symlink()
    assert destroy(tmp_path / "never") is False


def test_what_is_destroyed_was_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.write_bytes(b"plain" * 100_000)
    with file.open("rb") as held:
        assert destroy(file, "nonce") is True
        assert b"plain" not in held.read()
    assert not list(tmp_path.iterdir())


def test_a_full_inventory_still_fits_the_document(node: Node, tmp_path: Path) -> None:
    document = {"files": [{"path": "x" * 200, "n": n} for n in range(10_000)], "files_total": 10_000,
                "files_not_listed": 0}
    body = wipe_document.bounded(document)
    assert len(body) <= 1 << 20
    assert json.loads(body)["files_not_listed"] == 10_000 - len(json.loads(body)["files"])


@pytest.mark.parametrize(("rows", "ids"), [
    ([{"kind": "ext4", "options": "rw", "cow": False, "discard": False, "rotational": True}], set()),
    ([{"kind": "btrfs", "options": "rw", "cow": True, "discard": False, "rotational": False}], {"cow", "ssd"}),
    ([{"kind": "ext4", "options": "rw,data=journal", "cow": False, "discard": False, "rotational": True}], {"journal"}),
    ([{"kind": "overlay", "options": "rw", "cow": True, "discard": False, "rotational": None}], {"cow", "journal", "ssd"}),
    ([{"kind": "unknown", "options": "", "cow": None, "discard": None, "rotational": None}], {"cow", "journal", "ssd"}),
    ([{"kind": "tmpfs", "options": "rw", "cow": False, "discard": False, "rotational": None}], set())])
def test_caveats_follow_the_facts(rows: list[dict[str, Any]], ids: set[str]) -> None:
    assert set(media.caveats(rows)) == ids | {"operator-snapshot", "memory"}


def test_the_scan_counts_what_it_left_out(tmp_path: Path) -> None:
    (tmp_path / "skipped").mkdir()
    (tmp_path / "skipped" / "file").write_text(CANARY)
    os.mkfifo(tmp_path / "pipe")
    old = tmp_path / "old"
    old.write_text("nothing")
    scanner = scan.Scanner(scan.spellings(CANARY.encode()), b"decoy-decoy", time.time() - 60, time.monotonic() + 20,
                           [tmp_path / "skipped"])
    scanner.walk(scan.Root(tmp_path, True, "~"), 20)
    row = scanner.row("after")
    assert row["hits"] == 0 and row["roots"][0]["skipped"] == {"not a file": 1} and row["complete"]


def test_a_scan_out_of_time_is_not_complete(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    scanner = scan.Scanner([b"canary-x"], b"decoy", 0, time.monotonic() - 1, [])
    scanner.walk(scan.Root(tmp_path, True, "~"), 20)
    assert scanner.row("after")["complete"] is False
