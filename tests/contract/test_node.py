"""The port Node on the lab's node: a real sshd, the real agent and keeper, the rehearsal as the job.

Every verb that changes something is called twice with one intent; lines are cut at every stage.
"""
from __future__ import annotations

import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from orchestrator.domain.evidence import Outcome, Trust, WipeOrder
from orchestrator.domain.lease import HardwareClaim
from orchestrator.domain.names import Digest, Instant, LeaseKey, Reason
from orchestrator.domain.progress import Arrived, Finished, Record, RecordKind, Seen, Tick
from orchestrator.domain.spool import Spool
from orchestrator.domain.training import Deadline, Job
from orchestrator.errors import HostKeyChanged, LeaveNode, NodeLost
from orchestrator.node.driver import SshNode
from tests.fakes.labnode import Line, Renter, lab_node, new_key
from tests.fakes.rehearsal import CANARY, Rehearsal, hash_of, spool

pytestmark = pytest.mark.noleak
CLAIM = HardwareClaim("Simulated RTX 4090", 1, 24564)
LEASES = itertools.count(1)
KEEP = ("environment",)


@pytest.fixture(scope="module")
def renter() -> Iterator[Renter]:
    with lab_node() as renter:
        yield renter


@dataclass
class Stay:
    """One lease on the lab's node, armed; wiped at the end."""

    renter: Renter
    lease: str
    node: SshNode

    def deadline(self, seconds: int = 600) -> Deadline:
        return Deadline(LeaseKey(self.lease), Instant(int(time.time()) + seconds), 600, ())

    def order(self) -> WipeOrder:
        return WipeOrder(f"{self.lease}/wipe", LeaseKey(self.lease), KEEP, Instant(int(time.time()) + 120), "5e" * 16,
                         (CANARY,))

    def install(self) -> None:
        report = self.node.inspect(CLAIM)
        self.node.install(self.renter.payloads.fitting(report, "rehearsal"))

    def started(self, rehearsal: Rehearsal, **limits: int) -> Job:
        self.install()
        data = rehearsal.dataset()
        self.node.ship(data)
        job = rehearsal.job(data, **limits)
        self.node.start(job, rehearsal.secret)
        return job


@pytest.fixture
def stay(renter: Renter) -> Iterator[Stay]:
    lease = f"{next(LEASES):064x}"
    with renter.session(lease) as node:
        here = Stay(renter, lease, node)
        node.arm(here.deadline())
        yield here
        node.wipe(here.order())


def rehearsal(stay: Stay, folder: Path, **rest: object) -> Rehearsal:
    return Rehearsal(folder, stay.lease, **rest)  # type: ignore[arg-type]


def until(seen: Iterator[Seen], wanted: Callable[[Seen], bool], seconds: float = 60) -> list[Seen]:
    """Everything up to the first that is wanted."""
    deadline, came = time.monotonic() + seconds, []
    for one in seen:
        came.append(one)
        if wanted(one):
            return came
        assert time.monotonic() < deadline, came[-5:]
    return came


def numbers(seen: list[Seen]) -> list[int]:
    return [one.seq for one in seen if isinstance(one, Record)]


# ---- one whole job ----------------------------------------------------------------------------------------


def test_a_whole_job_every_verb_twice(stay: Stay, tmp_path: Path) -> None:
    node, home, plan = stay.node, tmp_path / "home", rehearsal(stay, tmp_path)
    assert node.arm(stay.deadline(900)).until >= node.arm(stay.deadline(60)).until - 2   # never shortens
    report = node.inspect(CLAIM)
    assert report.simulated and report.trust is Trust.CLAIMED and report.mismatch is None
    assert stay.renter.evidence.read(report.evidence)

    payload = stay.renter.payloads.fitting(report, "rehearsal")
    first, again = node.install(payload), node.install(payload)
    assert (first.payload, first.lock, first.packages) == (again.payload, again.lock, again.packages)
    challenged = node.challenge(CLAIM)
    assert challenged.mismatch is None
    assert {c.word for c in challenged.checks} == {"passed", "not applicable"}
    assert "not a GPU" in challenged.checks[0].text

    data = plan.dataset()
    assert node.ship(data) == node.ship(data) == data.sha256
    job = plan.job(data)
    started = node.start(job, plan.secret)
    assert started == node.start(job, plan.secret)

    seen = list(node.follow(job, home))
    assert seen[-1] == Finished("done", None)
    assert numbers(seen) == list(range(1, len(numbers(seen)) + 1))
    arrived = [one.file for one in seen if isinstance(one, Arrived)]
    assert {"adapter.age", "evaluation.age"} <= {file.name for file in arrived}
    assert all(hash_of(home / file.name) == file.sha256 for file in arrived)
    assert plan.opened(home, "adapter.age")[8:9] == b"{"
    assert node.stop(job, home) == node.stop(job, home) == Finished("done", None)

    wiped = node.wipe(stay.order())
    assert (wiped.outcome, wiped.leftovers, wiped.hits, wiped.decoy_found) == (Outcome.COMPLETE, 0, 0, True)
    assert wiped.files > 0 and wiped.kept[0].startswith("environment sha256:")
    assert node.wipe(stay.order()) == wiped
    document = json.loads(stay.renter.evidence.read(wiped.evidence))
    assert document["schema"] == "sealtune/wipe/1" and document["order_id"] == stay.order().order_id


def test_following_again_repeats_files_but_no_record(stay: Stay, tmp_path: Path) -> None:
    plan = rehearsal(stay, tmp_path)
    job, home = stay.started(plan), tmp_path / "home"
    first = list(stay.node.follow(job, home))
    second = list(stay.node.follow(job, home))
    assert numbers(first) and not numbers(second)
    assert {o.file.name for o in second if isinstance(o, Arrived)} >= {"adapter.age", "evaluation.age"}
    assert second[-1] == Finished("done", None)


def test_failed_job_says_why(stay: Stay, tmp_path: Path) -> None:
    plan = rehearsal(stay, tmp_path, extra={"rehearsal_fail": "true"})
    job = stay.started(plan)
    end = list(stay.node.follow(job, tmp_path / "home"))[-1]
    assert isinstance(end, Finished) and end.how == "failed" and end.error and "RehearsedFault" in end.error


def test_stop_seals_a_checkpoint_and_brings_it_home(stay: Stay, tmp_path: Path) -> None:
    plan = rehearsal(stay, tmp_path, steps=10_000, step_seconds="0.05")
    job, home = stay.started(plan), tmp_path / "home"
    following = stay.node.follow(job, home)
    until(following, lambda o: isinstance(o, Record) and o.kind is RecordKind.STEP)
    following.close()
    assert stay.node.stop(job, home) == Finished("stopped", None)
    assert [p.name for p in home.glob("checkpoint-*.age")]
    assert stay.node.stop(job, home).how == "stopped"


def test_ticks_come_every_second_and_beats_are_passed_on(stay: Stay, tmp_path: Path) -> None:
    plan = rehearsal(stay, tmp_path, extra={"rehearsal_hang": "true"})
    job, ticks, started = stay.started(plan), 0, time.monotonic()
    for seen in stay.node.follow(job, tmp_path / "home"):
        if isinstance(seen, Tick):
            ticks += 1
            stay.node.beat(stay.deadline(3600))
            assert seen.silent_for < 15
        if time.monotonic() - started > 6:
            break
    assert ticks >= 4
    assert stay.node.arm(stay.deadline(60)).until > time.time() + 3000    # the beat moved it, arm never shortens
    assert stay.node.stop(job, tmp_path / "home").how == "stopped"


# ---- lines that break -------------------------------------------------------------------------------------


def test_shipping_over_cuts_sends_no_part_twice_after_it_was_seen(stay: Stay, tmp_path: Path) -> None:
    size = 40 << 20
    (tmp_path / "dataset.age").write_bytes(bytes(range(256)) * (size // 256))
    cargo, line = spool(tmp_path / "dataset.age", "dataset.age"), Line(stay.renter.node.port)
    line.cut_after = [6 << 20, 12 << 20, 3 << 20, 9 << 20, 5 << 20, 1 << 20, 11 << 20]
    with stay.renter.session(stay.lease, port=line.port) as far:
        assert far.ship(cargo) == cargo.sha256
        assert line.cuts >= 4
        sent = line.connections
        assert far.ship(cargo) == cargo.sha256
        assert line.connections - sent <= 1              # nothing was left to send
    line.close()


def test_following_over_cuts_loses_and_doubles_nothing(stay: Stay, tmp_path: Path) -> None:
    plan = rehearsal(stay, tmp_path, steps=120, step_seconds="0.05")
    job, home, line = stay.started(plan), tmp_path / "home", Line(stay.renter.node.port)
    stop = threading.Event()

    def cutting() -> None:
        while not stop.wait(1.0):
            line.cut()
    threading.Thread(target=cutting, daemon=True).start()
    with stay.renter.session(stay.lease, port=line.port) as far:
        seen: list[Seen] = []
        for one in far.follow(job, home):
            seen.append(one)
            if len(numbers(seen)) > 100:
                stop.set()
        stop.set()
    line.close()
    assert line.cuts >= 2 and seen[-1] == Finished("done", None)
    assert numbers(seen) == list(range(1, len(numbers(seen)) + 1))
    kept = [json.loads(x)["seq"] for x in (home / "records.jsonl").read_text().splitlines()]
    assert kept == numbers(seen)
    assert hash_of(home / "adapter.age") in {o.file.sha256 for o in seen if isinstance(o, Arrived)}


def test_job_outlives_its_laptop(stay: Stay, tmp_path: Path) -> None:
    """A session dies in the middle; another process's session, without any memory but `home`, goes on."""
    plan = rehearsal(stay, tmp_path, steps=60, step_seconds="0.05")
    job, home = stay.started(plan), tmp_path / "home"
    with stay.renter.session(stay.lease) as one:
        following = one.follow(job, home)
        first = until(following, lambda o: isinstance(o, Record) and o.kind is RecordKind.STEP)
        following.close()
    with stay.renter.session(stay.lease) as two:
        rest = list(two.follow(job, home))
    assert numbers(first) + numbers(rest) == list(range(1, len(numbers(first)) + len(numbers(rest)) + 1))
    assert rest[-1] == Finished("done", None)


def test_node_that_is_gone_is_lost_after_the_patience(renter: Renter) -> None:
    line = Line(renter.node.port)
    line.close()
    started = time.monotonic()
    with renter.session("ee" * 32, patience=2, port=line.port) as node, pytest.raises(NodeLost):
        node.inspect(None)
    assert time.monotonic() - started < 15


def test_silent_node_ticks_on_with_growing_silence(stay: Stay, tmp_path: Path) -> None:
    plan = rehearsal(stay, tmp_path, extra={"rehearsal_hang": "true"})
    job, line = stay.started(plan), Line(stay.renter.node.port)
    with stay.renter.session(stay.lease, port=line.port) as far:
        silences: list[int] = []
        for seen in far.follow(job, tmp_path / "home"):
            if isinstance(seen, Record):
                line.silent.set()
            if isinstance(seen, Tick):
                silences.append(seen.silent_for)
            if len(silences) >= 8:
                break
        line.close()
        line.silent.clear()
    assert silences[-1] >= 4
    stay.node.stop(job, tmp_path / "home")


# ---- who is there, and who may not ------------------------------------------------------------------------


@pytest.mark.sealed
def test_host_key_that_changes_in_the_middle_ends_it(stay: Stay, tmp_path: Path) -> None:
    """The session is cut, and somebody else answers under the address."""
    from tests.fakes.rogue import Rogue
    rogue, line = Rogue(), Line(stay.renter.node.port)
    with stay.renter.session(stay.lease, port=line.port) as far:
        far.inspect(None)
        line.target = rogue.port
        line.cut()
        with pytest.raises(HostKeyChanged):
            far.inspect(None)
        with pytest.raises(HostKeyChanged):
            list(far.follow(rehearsal(stay, tmp_path).job(spool_of_nothing(tmp_path)), tmp_path / "home"))
    assert rogue.heard == []
    line.close()
    rogue.close()


def spool_of_nothing(folder: Path) -> Spool:
    (folder / "dataset.age").write_bytes(b"x")
    return spool(folder / "dataset.age", "dataset.age")


def test_key_that_was_not_let_in(renter: Renter) -> None:
    stranger = Renter(renter.node, new_key()[0])
    with stranger.session("ef" * 32, patience=2) as node, pytest.raises(NodeLost, match="let us in"):
        node.inspect(None)


def test_second_lease_is_told_that_the_node_is_busy(stay: Stay) -> None:
    with stay.renter.session("fe" * 32) as other:
        with pytest.raises(LeaveNode) as left:
            other.arm(stay.deadline())
    assert left.value.reason is Reason.UNSUITABLE


def test_nothing_is_laid_down_before_the_keeper_watches(renter: Renter, tmp_path: Path) -> None:
    (tmp_path / "dataset.age").write_bytes(b"x" * 100)
    with renter.session("fd" * 32) as node, pytest.raises(NodeLost, match="not-armed"):
        node.ship(spool(tmp_path / "dataset.age", "dataset.age"))


def test_payload_that_is_not_ours_is_not_installed(stay: Stay) -> None:
    from dataclasses import replace
    payload = stay.renter.payloads.fitting(stay.node.inspect(CLAIM), "rehearsal")
    with pytest.raises(LeaveNode):
        stay.node.install(replace(payload, digest=Digest("sha256:" + "0" * 64)))


def test_job_nobody_started(stay: Stay, tmp_path: Path) -> None:
    job = rehearsal(stay, tmp_path).job(spool_of_nothing(tmp_path))
    assert stay.node.stop(job, tmp_path / "home").how == "lost"
    assert list(stay.node.follow(job, tmp_path / "home"))[-1] == Finished("lost", None)


def test_same_arguments_same_session(renter: Renter) -> None:
    nodes = renter.nodes()
    one = nodes.at(renter.access(), renter.key, LeaseKey("aa" * 32), 20)
    assert nodes.at(renter.access(), renter.key, LeaseKey("aa" * 32), 20) is one
    assert nodes.at(renter.access(), renter.key, LeaseKey("ab" * 32), 20) is not one
    nodes.close()
