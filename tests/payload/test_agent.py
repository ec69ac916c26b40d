"""The agent over its pipes: who may come in, what it takes, what it refuses, and how a connection ends."""
from __future__ import annotations

import os
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from orchestrator.domain.document import sha256
from orchestrator.node.frames import Frame, Verb, encode
from tests.payload.talk import LEASE, OTHER_LEASE, PART, Ended, Node, Refused, a_node

pytestmark = pytest.mark.noleak


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    with a_node(tmp_path / "home") as node:
        yield node


def test_hello_says_who_answers_and_touches_nothing(node: Node) -> None:
    said = node.connect(hello=False).ask("hello", {"protocol": 1, "lease": LEASE}).header
    assert said["protocol"] == 1 and said["keeper"] is None and said["boot_id"]
    assert not list(node.home.iterdir())


@pytest.mark.parametrize("header", [
    {}, {"protocol": 2, "lease": LEASE}, {"protocol": 1, "lease": "x"}, {"protocol": 1, "lease": LEASE.upper()},
    {"protocol": 1, "lease": 5}, {"protocol": 1, "lease": LEASE + "\n"}])
def test_a_hello_of_another_kind_is_refused(node: Node, header: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="bad-request"):
        node.connect(hello=False).ask("hello", header)


def test_nothing_is_done_before_hello_and_nothing_is_laid_down_before_arm(node: Node) -> None:
    agent = node.connect(hello=False)
    for verb in ("arm", "parts", "records", "wipe"):
        with pytest.raises(Refused, match="bad-request"):
            agent.ask(verb, {"order": {}})
    agent.ask("hello", {"protocol": 1, "lease": LEASE})
    for verb in ("parts", "put", "close", "install", "fetch", "start"):
        with pytest.raises(Refused, match="not-armed"):
            agent.ask(verb)
    assert not list(node.home.iterdir())


def test_the_workspace_is_one_leases(node: Node) -> None:
    node.armed()
    with pytest.raises(Refused, match="busy"):
        node.connect(lease=OTHER_LEASE)
    assert node.connect(hello=False).ask("hello", {"protocol": 1, "lease": LEASE}).header["keeper"]


def test_the_later_target_wins_and_silence_is_the_newest(node: Node) -> None:
    agent = node.armed(seconds=500, silence=100)
    first = node.keeper()
    said = [agent.ask("arm", {"seconds": s, "silence": q, "self_end": []}).header for s, q in ((900, 50), (5, 70))]
    assert [(s["seconds"] > 890, s["silence"]) for s in said] == [(True, 50), (True, 70)]
    assert node.keeper() == first


@pytest.mark.parametrize("header", [
    {"seconds": 0, "silence": 5, "self_end": []}, {"seconds": 5, "silence": 0, "self_end": []},
    {"seconds": True, "silence": 5, "self_end": []}, {"seconds": 5, "silence": 5, "self_end": "reboot"},
    {"seconds": 5, "silence": 5, "self_end": [1]}, {"seconds": 2**40, "silence": 5, "self_end": []}, {}])
def test_an_arm_that_cannot_be_is_refused(node: Node, header: dict[str, Any]) -> None:
    with pytest.raises(Refused, match="bad-request"):
        node.connect().ask("arm", header)


def test_the_workspace_must_be_ours_alone(node: Node, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (node.home / ".sealtune").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(Refused, match="unsuitable"):
        node.connect().ask("arm", {"seconds": 5, "silence": 5, "self_end": []})
    (node.home / ".sealtune").unlink()
    (node.home / ".sealtune").mkdir(mode=0o777)
    (node.home / ".sealtune").chmod(0o777)
    with pytest.raises(Refused, match="unsuitable"):
        node.connect().ask("arm", {"seconds": 5, "silence": 5, "self_end": []})
    assert not list((tmp_path / "elsewhere").iterdir())


def test_everything_of_ours_is_for_us_alone(node: Node) -> None:
    agent = node.armed()
    node.put(agent, "dataset.age", b"sealed")
    for path in (node.home / ".sealtune").rglob("*"):
        assert path.lstat().st_mode & 0o077 == 0, path


# ---- cargo ---------------------------------------------------------------------------------------------------


def test_parts_go_on_after_a_cut_and_the_whole_is_checked(node: Node) -> None:
    data = os.urandom(2 * PART + 1000)
    pieces = [data[i:i + PART] for i in range(0, len(data), PART)]
    digests = [sha256(piece) for piece in pieces]
    asked = {"name": "dataset.age", "size": len(data), "parts": 3, "digests": digests}
    first = node.armed()
    assert first.ask("parts", asked).header["have"] == []
    for index in (2, 0):
        first.ask("put", {"name": "dataset.age", "index": index, "sha256": digests[index]}, pieces[index])
    first.kill()

    second = node.connect()
    assert second.ask("parts", asked).header["have"] == [0, 2]
    assert second.ask("parts", {**asked, "first": 1, "digests": digests[1:]}).header["have"] == [2]
    with pytest.raises(Refused, match="digest"):
        second.ask("close", {"name": "dataset.age", "sha256": sha256(data), "size": len(data)})
    second.ask("put", {"name": "dataset.age", "index": 1, "sha256": digests[1]}, pieces[1])
    for _ in range(2):
        closed = second.ask("close", {"name": "dataset.age", "sha256": sha256(data), "size": len(data)}).header
        assert closed == {"sha256": sha256(data), "size": len(data)}
    assert (node.place.private / "dataset.age").read_bytes() == data
    assert second.ask("parts", asked).header["have"] == [0, 1, 2]
    second.ask("discard", {"name": "dataset.age"})
    assert second.ask("parts", asked).header["have"] == []


def test_one_rotten_byte_costs_one_part(node: Node) -> None:
    data = os.urandom(2 * PART)
    digests = [sha256(data[:PART]), sha256(data[PART:])]
    agent = node.armed()
    for index in (0, 1):
        agent.ask("put", {"name": "dataset.age", "index": index, "sha256": digests[index]},
                  data[index * PART:(index + 1) * PART])
    with (node.place.parts / "dataset.age").open("r+b") as file:
        file.seek(PART + 5)
        file.write(b"\0" if data[PART + 5] else b"\1")
    asked = {"name": "dataset.age", "size": len(data), "parts": 2, "digests": digests}
    assert agent.ask("parts", asked).header["have"] == [0]


@pytest.mark.parametrize("name", ["../x", "spec.json", "adapter.age", "/etc/passwd", "dataset.age\0", "", 5, None])
def test_no_name_but_ours_is_taken(node: Node, name: Any) -> None:
    agent = node.armed()
    for verb in ("put", "close", "discard"):
        with pytest.raises(Refused, match="bad-request"):
            agent.ask(verb, {"name": name, "index": 0, "sha256": sha256(b"x"), "size": 1}, b"x" if verb == "put" else b"")
    with pytest.raises(Refused, match="bad-request"):
        agent.ask("get", {"name": f"job/{name}", "offset": 0, "length": 10})


def test_a_part_must_be_what_it_says(node: Node) -> None:
    agent = node.armed()
    with pytest.raises(Refused, match="digest"):
        agent.ask("put", {"name": "dataset.age", "index": 0, "sha256": sha256(b"y")}, b"x")
    with pytest.raises(Refused, match="no-space"):
        agent.ask("parts", {"name": "dataset.age", "size": 1 << 43, "parts": 1 << 20, "digests": []})
    for size, parts in ((10, 2), (-1, 0), (2**60, 1)):
        with pytest.raises(Refused, match="bad-request"):
            agent.ask("parts", {"name": "dataset.age", "size": size, "parts": parts, "digests": []})


def test_a_link_in_our_place_is_not_followed(node: Node, tmp_path: Path) -> None:
    agent = node.armed()
    victim = tmp_path / "victim"
    victim.write_bytes(b"untouched")
    (node.place.parts / "dataset.age").symlink_to(victim)
    with pytest.raises(Refused):
        agent.ask("put", {"name": "dataset.age", "index": 0, "sha256": sha256(b"x")}, b"x")
    assert victim.read_bytes() == b"untouched"


# ---- the channel ------------------------------------------------------------------------------------------------


def test_a_body_that_is_too_large_for_its_verb_ends_the_channel(node: Node) -> None:
    agent = node.connect()
    with pytest.raises((Ended, BrokenPipeError)):
        agent.ask("start", {}, bytes(1024 * 1024 + 1))


def test_the_agent_ends_with_its_input(node: Node) -> None:
    agent = node.connect()
    assert agent.process.stdin is not None
    agent.process.stdin.close()
    assert agent.process.wait(20) == 0


def test_bye_ends_the_agent_and_not_the_keeper(node: Node) -> None:
    agent = node.armed()
    agent.ask("bye")
    assert agent.process.wait(20) == 0
    assert node.connect(hello=False).ask("hello", {"protocol": 1, "lease": LEASE}).header["keeper"]


def test_an_unknown_verb_is_a_refusal(node: Node) -> None:
    agent = node.connect()
    agent.send(struct.pack(">2sBBII", b"ST", 1, 99, 2, 0) + b"{}")
    with pytest.raises(Refused, match="bad-request"):
        agent.answer(99)


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.binary(min_size=1, max_size=300))
def test_garbage_ends_the_channel_and_nothing_else(node: Node, data: bytes) -> None:
    agent = node.connect()
    garbage = data if not data.startswith(b"S") else b"X" + data
    agent.send(garbage.ljust(12, b"\0"))
    with pytest.raises(Ended):
        agent.answer(1)
    assert agent.close() == 1


WORDS = st.sampled_from(["name", "index", "sha256", "size", "parts", "digests", "job_id", "offset", "wait", "spec",
                         "order", "seconds", "silence", "self_end", "names", "stage", "base", "grace", "length", "beat"])
VALUES = (st.none() | st.booleans() | st.integers(-2**62, 2**62)
          | st.text(st.characters(exclude_categories=["Cs"]), max_size=9))


def test_any_header_gets_an_answer_of_ours(node: Node) -> None:
    agent = node.armed()

    @settings(max_examples=120, deadline=None)
    @given(st.sampled_from([v for v in Verb if v not in (Verb.BYE, Verb.WIPE, Verb.ARM)]),
           st.dictionaries(WORDS, VALUES | st.lists(VALUES, max_size=3) | st.dictionaries(WORDS, VALUES, max_size=3)))
    def probe(verb: Verb, header: dict[str, Any]) -> None:
        agent.send(encode(Frame(verb, header)))
        try:
            agent.answer(verb)
        except Refused as no:
            assert no.code != "internal", no.detail

    probe()


def test_probes_are_a_closed_list(node: Node) -> None:
    agent = node.connect()
    reply = agent.ask("probe", {"names": ["whoami", "boot-id", "nvidia-smi-xml"]})
    results = reply.header["results"]
    assert sum(row["bytes"] for row in results.values()) == len(reply.body)
    assert reply.body.startswith(str(os.geteuid()).encode())
    for names in (["uname", "uname"], ["rm"], "uname", [["uname"]], None):
        with pytest.raises(Refused, match="bad-request"):
            agent.ask("probe", {"names": names})
