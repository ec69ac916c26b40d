"""The keeper: a job that outlives its connections, is started once, held to its limits, and ended when nobody comes."""
from __future__ import annotations

import json
import os
import resource
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.document import sha256
from tests.payload.rental import JOB, Lease
from tests.payload.talk import LEASE, OTHER_LEASE, Node, Refused, a_node, lives, until

pytestmark = pytest.mark.noleak
HANG = {"rehearsal_hang": "1"}


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with a_node(tmp_path / "home") as node:
        yield node


def test_a_whole_rehearsal(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    started = lease.start()
    assert started["job_id"] == JOB
    how, records = lease.follow()
    assert how == "done"
    assert [r["seq"] for r in records] == list(range(1, len(records) + 1))
    assert {"phase", "step", "result", "published"} <= {r["kind"] for r in records}
    assert all(isinstance(v, str) for r in records for v in r["data"].values())
    for published in (r["data"] for r in records if r["kind"] == "published"):
        data = lease.home_copy(published["name"])
        assert sha256(data) == published["sha256"] and len(data) == int(published["bytes"])
        assert data.startswith(b"age-encryption.org/v1")
    assert lease.start() == started
    with pytest.raises(Refused, match="started"):
        lease.start(job_id=LEASE + "/another")


def test_the_job_goes_on_when_its_connection_dies(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    started = lease.start({"rehearsal_steps": "30", "rehearsal_step_seconds": "0.05"})
    lease.wait_for("step")
    lease.agent.kill()
    lease.agent = node.connect()
    state = lease.agent.ask("hello", {"protocol": 1, "lease": LEASE}).header["keeper"]
    assert state["job"]["id"] == JOB
    assert lease.start() == started
    how, records = lease.follow()
    assert how == "done" and [r["seq"] for r in records] == list(range(1, len(records) + 1))
    steps = [r["data"]["step"] for r in records if r["kind"] == "step"]
    assert steps == [str(n) for n in range(1, 31)]


def test_the_secret_is_in_no_environment_no_command_and_no_file(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    lease.start(HANG)
    lease.wait_for("phase")
    secret = str(lease.shop.node).encode()
    for path in Path("/proc").glob("[0-9]*"):
        for name in ("environ", "cmdline"):
            try:
                assert secret not in (path / name).read_bytes()
            except OSError:
                continue
    for path in node.home.rglob("*"):
        assert not path.is_file() or secret not in path.read_bytes()


def test_stop_lets_the_job_seal_a_checkpoint(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    lease.start({"rehearsal_steps": "1000", "rehearsal_step_seconds": "0.05"})
    lease.wait_for("step")
    for _ in range(2):
        assert lease.agent.ask("stop", {"job_id": JOB, "grace": 30}).header["how"] == "stopped"
    how, records = lease.follow()
    assert how == "stopped" and records[-1]["kind"] == "published"
    assert lease.home_copy(records[-1]["data"]["name"])


def test_a_job_that_does_not_stop_is_killed(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    lease.start(HANG)
    lease.wait_for("phase")
    pid = trainer_of(node)
    os.kill(pid, signal.SIGSTOP)
    assert lease.agent.ask("stop", {"job_id": JOB, "grace": 1}).header["how"] == "stopped"
    assert not lives(pid)


def test_a_job_killed_by_somebody_else_failed(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    lease.start(HANG)
    lease.wait_for("phase")
    os.kill(trainer_of(node), signal.SIGKILL)
    how, records = lease.follow()
    assert how == "failed" and records[-1]["data"]["type"] == "Signal9"


def test_a_failed_job_says_so_itself(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    lease.start({"rehearsal_fail": "1"})
    how, records = lease.follow()
    errors = [r["data"] for r in records if r["kind"] == "error"]
    assert how == "failed" and [error["type"] for error in errors] == ["RehearsedFault"]


def test_a_job_without_its_keeper_is_lost_and_dead(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    lease.start(HANG)
    lease.wait_for("phase")
    pid = trainer_of(node)
    os.kill(node.keeper(), signal.SIGKILL)
    until(lambda: not lives(pid), 20)
    assert lease.follow()[0] == "lost"
    with pytest.raises(Refused, match="not-armed"):
        lease.start(job_id=LEASE + "/another")
    lease.agent.ask("arm", {"seconds": 60, "silence": 60, "self_end": []})
    node.keeper()
    assert lease.follow()[0] == "lost"
    assert lease.start()["job_id"] == JOB           # the first answer, and no second start
    with pytest.raises(Refused, match="started"):
        lease.start(job_id=LEASE + "/another")


# ---- limits ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("knobs", "limits", "how"), [
    (HANG, {"seconds": 2}, "deadline"),
    ({"rehearsal_step_seconds": "0.01", "rehearsal_steps": "50"}, {"artifact_bytes": 100}, "failed"),
    ({"rehearsal_step_seconds": "0.0", "rehearsal_steps": "500"}, {"records": 100}, "done"),
])
def test_limits_are_kept(node: Node, tmp_path: Path, knobs: dict[str, str], limits: dict[str, int], how: str) -> None:
    lease = Lease(node, tmp_path / "desk")
    lease.start(knobs, limits=lease.limits(**limits))
    ended, records = lease.follow()
    assert ended == how
    assert len(records) <= 2 * limits.get("records", 100_000) + 128


def a_talker(node: Node, script: str) -> None:
    """Puts a program of ours in the place of the environment's Python."""
    python = node.place.environment(sha256(b"# a lock of nothing\n")) / "bin" / "python"
    python.write_text(f"#!/bin/sh\n{script}\n")


def test_a_job_that_talks_too_much_is_ended(node: Node, tmp_path: Path) -> None:
    """Its last record comes too: an end was once told together with lines that were read before it."""
    lease = Lease(node, tmp_path / "desk")
    a_talker(node, """while true; do echo '{"kind":"step","data":{"step":"1"}}'; done""")
    lease.start(limits=lease.limits(records=50))
    how, records = lease.follow()
    assert how == "failed" and records[-1]["data"]["type"] == "RecordLimit"
    assert len(records) == 50 + 64 + 1


def test_a_file_beyond_its_cap_ends_the_job(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    a_talker(node, "head -c 5000 /dev/zero > ${11}/adapter.age.part; sleep 60")
    lease.start(limits=lease.limits(artifact_bytes=4999))
    how, records = lease.follow()
    assert how == "failed" and records[-1]["data"]["type"] == "ArtifactLimit"


def test_only_records_are_recorded(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    quoted = '{"kind":"quoted","data":{' + ",".join(f'"k{n}":"' + '\\"' * 200 + '"' for n in range(9)) + ',"z":"'
    lines = [
        "not json", "[]", '{"kind":"step"}', '{"kind":"Step!","data":{}}', '{"kind":5,"data":{}}', '{"data":{}}',
        '{"kind":"step","data":{"loss":0.5,"step":3,"deep":{"a":"b"},"yes":true,"Bad Key":"x"}}',
        '{"kind":"later-kind","data":{"text":"' + "é\\u001b]52;" + "x" * 300 + '"}}',
        '{"kind":"step","data":{"long":"' + "y" * 9000 + '"}}',
        quoted + "z" * (4096 - len(quoted) - 3) + '"}}',
        '{"kind":"phase","data":{"phase":"done"}} trailing',
    ]
    said = tmp_path / "said"
    said.write_text("\n".join(lines) + "\n")
    a_talker(node, f"cat {said}; echo a secret >&2; exit 0")
    lease.start()
    how, records = lease.follow()
    assert how == "done"
    assert [r["kind"] for r in records] == ["step", "later-kind", "quoted"]
    assert records[0]["data"] == {"step": "3"}
    text = records[1]["data"]["text"]
    assert len(text) == 200 and text.isascii() and text.isprintable()
    raw = node.place.records.read_bytes().splitlines(keepends=True)
    assert max(map(len, raw)) <= 4096 and [r["seq"] for r in records] == [1, 2, 3]


def test_the_gpu_is_sampled_while_the_job_runs(tmp_path: Path) -> None:
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "nvidia-smi").write_text("#!/bin/sh\necho '512, 24564, 93, 61, [N/A]'\n")
    (tools / "nvidia-smi").chmod(0o755)
    with a_node(tmp_path / "home", environment={"PATH": f"{tools}:{os.environ['PATH']}"}) as node:
        lease = Lease(node, tmp_path / "desk")
        lease.start({"rehearsal_steps": "40", "rehearsal_step_seconds": "0.1"})
        how, records = lease.follow()
        samples = [r["data"] for r in records if r["kind"] == "gpu"]
        assert how == "done" and samples
        assert samples[0] == {"mem_mib": "512", "mem_total_mib": "24564", "util_pct": "93", "temp_c": "61"}


# ---- alone ------------------------------------------------------------------------------------------------------


def test_at_the_deadline_it_seals_wipes_and_ends_the_lease(node: Node, tmp_path: Path) -> None:
    witness = tmp_path / "ended"
    lease = Lease(node, tmp_path / "desk", seconds=4, self_end=("/bin/sh", "-c", f"echo over > {witness}"))
    keeper = node.keeper()
    lease.start(HANG)
    lease.wait_for("phase")
    trainer = trainer_of(node)
    until(lambda: witness.exists() and not lives(keeper), 40)
    assert not lives(trainer) and not node.place.private.exists()
    assert [path.name for path in node.place.root.iterdir()] == ["public"]
    assert lease.agent.ask("hello", {"protocol": 1, "lease": LEASE}).header["keeper"] is None
    with pytest.raises(Refused, match="unknown-job"):
        lease.follow()
    assert node.connect(lease=OTHER_LEASE)           # the node is free again


def test_silence_is_a_deadline_and_a_beat_is_a_sign_of_life(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    keeper = node.keeper()
    lease.start(HANG)
    for _ in range(8):
        beat = {"seconds": 600, "silence": 2}
        lease.agent.ask("records", {"job_id": JOB, "offset": 1 << 20, "wait": 1, "beat": beat})
    assert lives(keeper)
    lease.agent.kill()
    until(lambda: not lives(keeper), 45)
    assert not node.place.private.exists()


def test_it_outlives_hangups_and_its_session(node: Node) -> None:
    agent = node.armed()
    keeper = node.keeper()
    agent.kill()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGPIPE):
        os.kill(keeper, number)
    assert node.connect(hello=False).ask("hello", {"protocol": 1, "lease": LEASE}).header["keeper"]
    stat = Path(f"/proc/{keeper}/stat").read_text().rpartition(")")[2].split()
    assert stat[4] == "0" and int(stat[3]) != os.getsid(0)      # no terminal, another session
    for fd in ("0", "1", "2"):
        assert Path(f"/proc/{keeper}/fd/{fd}").readlink() == Path("/dev/null")


# ---- a full disk ------------------------------------------------------------------------------------------------


def full(pid: int) -> None:
    """From now on no write of this process finds room."""
    resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, 0))


def test_on_a_full_disk_the_job_is_lost_and_the_wipe_is_not(node: Node, tmp_path: Path) -> None:
    """The keeper can write neither records nor how the job ended; it says so when asked, and lives on."""
    lease = Lease(node, tmp_path / "desk")
    lease.start({"rehearsal_steps": "1000", "rehearsal_step_seconds": "0.02"})
    lease.wait_for("step")
    keeper, trainer = node.keeper(), trainer_of(node)
    full(keeper)
    until(lambda: not lives(trainer), 20)
    assert lease.follow()[0] == "lost" and lives(keeper)
    with node.place.records.open("ab") as records:
        records.write(b'{"at":1,"data":{"na')          # as a write that found room for half of it leaves it
    full(lease.agent.process.pid)
    header, document = lease.wipe()
    assert header["outcome"] == "partial" and header["leftovers"] == header["hits"] == 0    # it could not plant a decoy
    assert document["decoy"]["planted"] is False and document["job"] == {"id": JOB, "how": "lost"}
    assert {row["outcome"] for row in document["files"]} <= {"removed", "removed by the job"}
    assert not list(node.place.private.rglob("*.age"))
    assert lease.wipe(node.connect())[0]["outcome"] == "complete"


def test_on_a_full_disk_the_deadline_is_kept(node: Node, tmp_path: Path) -> None:
    witness = tmp_path / "ended"
    lease = Lease(node, tmp_path / "desk", seconds=6, self_end=("/bin/mkdir", str(witness)))
    keeper = node.keeper()
    lease.start(HANG)
    lease.wait_for("phase")
    full(keeper)
    until(lambda: witness.exists() and not lives(keeper), 40)
    assert not node.place.private.exists()


def test_a_job_whose_records_cannot_be_made_is_not_started(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    node.place.records.mkdir()
    with pytest.raises(Refused, match="no-space"):
        lease.start()
    node.place.records.rmdir()
    assert lease.start()["job_id"] == JOB and lease.follow()[0] == "done"


def test_a_file_that_does_not_go_does_not_keep_the_lease(node: Node, tmp_path: Path) -> None:
    """At the deadline everything is tried, and then the lease ends all the same."""
    witness = tmp_path / "ended"
    node.armed(seconds=3, self_end=("/bin/mkdir", str(witness)))
    keeper = node.keeper()
    node.place.lock.unlink()
    node.place.lock.mkdir()              # in the place of a file that is to be removed
    until(lambda: witness.exists() and not lives(keeper), 40)
    assert not node.place.private.exists()


# ---- what start refuses -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("changes", "code"), [
    ({"data": sha256(b"other")}, "digest"), ({"resume": sha256(b"none")}, "digest"), ({"engine": "perl"}, "bad-request"),
    ({"limits": {"seconds": "x"}}, "bad-request"), ({"job_id": ""}, "bad-request"),
    ({"base": {"repo": "a/b", "commit": "../x", "files": []}}, "bad-request"),
    ({"base": {"repo": "a/b", "commit": "0" * 40, "files": [["config.json", "0" * 64]]}}, "bad-request")])
def test_a_spec_that_does_not_fit_starts_nothing(node: Node, tmp_path: Path, changes: dict[str, Any], code: str) -> None:
    lease = Lease(node, tmp_path / "desk")
    with pytest.raises(Refused, match=code):
        lease.start(**changes)
    assert not (node.place.private / "job.json").exists()
    lease.start()


def test_a_secret_that_is_too_long_starts_nothing(node: Node, tmp_path: Path) -> None:
    lease = Lease(node, tmp_path / "desk")
    for secret in (b"", b"x" * 4097):
        with pytest.raises(Refused, match="bad-request"):
            lease.agent.ask("start", {"spec": {}, "variant": ""}, secret)


def trainer_of(node: Node) -> int:
    """The child of the keeper that runs the payload."""
    children = [int(path.parent.name) for path in Path("/proc").glob("[0-9]*/stat")
                if parent_of(path) == node.keeper()]
    return next(pid for pid in children if b"payload.zip" in Path(f"/proc/{pid}/cmdline").read_bytes())


def parent_of(stat: Path) -> int:
    try:
        return int(stat.read_text().rpartition(")")[2].split()[1])
    except OSError:
        return 0


def test_its_own_note_says_who_it_is(node: Node) -> None:
    node.armed()
    note = json.loads((node.place.private / "keeper.json").read_text())
    assert note["pid"] == node.keeper() and lives(note["pid"])
