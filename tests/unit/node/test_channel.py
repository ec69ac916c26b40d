"""A hostile agent at the other end of the channel: everything it may try ends the channel, soon and cheaply."""
from __future__ import annotations

import io
import resource
import threading
import time
import zipfile
from collections.abc import Callable, Iterator

import paramiko
import pytest

from orchestrator.domain.lease import Access
from orchestrator.domain.names import LeaseKey
from orchestrator.errors import LeaveNode, NodeLost
from orchestrator.node.channel import AgentChannel, Broken, NotAnAgent, Refusal
from orchestrator.node.client import Agent
from orchestrator.node.connection import Dialer, Pace
from orchestrator.node.frames import Frame, FrameError, Verb, decode, encode
from orchestrator.node.lane import Lane
from tests.fakes.labnode import new_key
from tests.fakes.rogue import Rogue

pytestmark = pytest.mark.sealed
PACE = Pace(silence=2, probe=1.0)
ARCHIVE = b"not a real archive"
HELLO = Frame(129, {"protocol": 1, "python": "3.11", "boot_id": "b", "clock": 1, "keeper": None})


def reader(channel: paramiko.Channel) -> Callable[[int], bytes]:
    def read(size: int) -> bytes:
        data = b""
        while len(data) < size:
            piece = channel.recv(size - len(data))
            if not piece:
                raise EOFError
            data += piece
        return data
    return read


def past_the_loader(channel: paramiko.Channel) -> Callable[[int], bytes]:
    read = reader(channel)
    read(8 + len(ARCHIVE))
    return read


def noise(channel: paramiko.Channel) -> None:
    while True:
        channel.sendall(b"\x00" * 30_000)


def flood_of_progress(channel: paramiko.Channel) -> None:
    while True:
        channel.sendall(encode(Frame(126, {"done": 1, "of": 2, "what": "x"})) * 100)


def endless_progress_body(channel: paramiko.Channel) -> None:
    channel.sendall(encode(Frame(126, {"done": 1, "of": 2, "what": "x"}, b"y" * 1000)))
    time.sleep(20)


def a_zip(channel: paramiko.Channel) -> None:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("../../x", "y" * 10_000)
    channel.sendall(file.getvalue())
    time.sleep(20)


def huge_body(channel: paramiko.Channel) -> None:
    channel.sendall(b"ST\x01\x81" + (2).to_bytes(4, "big") + (0xFFFFFFFF).to_bytes(4, "big") + b"{}")
    noise(channel)


def one_byte_a_second(channel: paramiko.Channel) -> None:
    for byte in encode(HELLO):
        channel.sendall(bytes([byte]))
        time.sleep(1)


def silence(channel: paramiko.Channel) -> None:
    time.sleep(20)


def no_end(channel: paramiko.Channel) -> None:
    channel.sendall(encode(HELLO)[:-3])
    channel.shutdown_write()
    time.sleep(20)


def another_verb(channel: paramiko.Channel) -> None:
    channel.sendall(encode(Frame(130, {"seconds": 1})))
    time.sleep(20)


def hostile(play: Callable[[paramiko.Channel], None]) -> Callable[[paramiko.Channel], None]:
    def behave(channel: paramiko.Channel) -> None:
        past_the_loader(channel)
        play(channel)
    return behave


def talk(rogue: Rogue) -> AgentChannel:
    access = Access("127.0.0.1", rogue.port, "me", (rogue.line,), "signed")
    return AgentChannel(Dialer(access, new_key()[0], threading.Semaphore(4), PACE).dial(), ARCHIVE, PACE)


@pytest.mark.parametrize("play", [noise, flood_of_progress, endless_progress_body, a_zip, huge_body, one_byte_a_second,
                                  silence, no_end, another_verb])
def test_broken_rules_end_the_channel(play: Callable[[paramiko.Channel], None]) -> None:
    rogue = Rogue(hostile(play))
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.monotonic()
    try:
        channel = talk(rogue)
        with pytest.raises(Broken):
            channel.ask(Verb.HELLO, {}, seconds=5)
        assert not channel.alive
        channel.transport.close()
    finally:
        rogue.close()
    assert time.monotonic() - started < 12
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024


def test_an_interrupted_question_takes_its_channel_along() -> None:
    """Its answer is still on its way, and would be taken for the next question's."""
    def work(channel: paramiko.Channel) -> None:
        channel.sendall(encode(Frame(126, {"done": 1, "of": 2, "what": "installing"})))
        time.sleep(5)

    def interrupted(done: int, of: int, what: str) -> None:
        raise KeyboardInterrupt

    rogue = Rogue(hostile(work))
    channel = talk(rogue)
    with pytest.raises(KeyboardInterrupt):
        channel.ask(Verb.INSTALL, {}, progress=interrupted)
    assert not channel.alive
    channel.transport.close()
    rogue.close()


def test_words_of_a_refusal_are_made_harmless() -> None:
    def refuse(channel: paramiko.Channel) -> None:
        channel.sendall(encode(Frame(127, {"code": "busy\x1b]52;c;x\x07", "detail": "\u202e\r\x1b[2J" + "x" * 1000})))
        time.sleep(5)
    rogue = Rogue(hostile(refuse))
    channel = talk(rogue)
    with pytest.raises(Refusal) as no:
        channel.ask(Verb.HELLO, {})
    assert not set(str(no.value)) & {"\x1b", "\r", "\u202e", "\x07"} and len(no.value.detail) <= 600
    assert channel.alive                                     # a refusal is an answer
    channel.transport.close()
    rogue.close()


@pytest.mark.parametrize(("code", "error"), [(127, NotAnAgent), (96, NotAnAgent), (1, Broken), (0, Broken)])
def test_exit_code_is_a_hint(code: int, error: type[Broken]) -> None:
    def leave(channel: paramiko.Channel) -> None:
        channel.send_exit_status(code)
        channel.shutdown_write()
        time.sleep(5)
    rogue = Rogue(leave)
    channel = talk(rogue)
    with pytest.raises(error):
        channel.ask(Verb.HELLO, {})
    channel.transport.close()
    rogue.close()


# ---- lanes --------------------------------------------------------------------------------------------------


def lane_to(rogue: Rogue, patience: float) -> Lane:
    access = Access("127.0.0.1", rogue.port, "me", (rogue.line,), "signed")
    return Lane(Dialer(access, new_key()[0], threading.Semaphore(4), PACE), ARCHIVE, LeaseKey("ab" * 32), patience)


@pytest.fixture
def liar() -> Iterator[Rogue]:
    """Greets well and then answers every question with nonsense."""
    def lie(channel: paramiko.Channel) -> None:
        read = past_the_loader(channel)
        decode(read)
        channel.sendall(encode(HELLO))
        decode(read)
        channel.sendall(encode(Frame(131, {"results": {"uname": {"rc": 0, "bytes": 1000}}}, b"x")))
        time.sleep(5)
    rogue = Rogue(lie)
    yield rogue
    rogue.close()


def test_liar_gets_a_few_chances_and_no_more(liar: Rogue) -> None:
    lane = lane_to(liar, patience=60)
    with pytest.raises(NodeLost) as lost:
        lane.within(lambda agent: agent.probe(["uname"]))
    assert isinstance(lost.value.__cause__, FrameError)
    assert liar.heard.count("exec") == 4
    lane.close()


def greeting(then: Callable[[paramiko.Channel], None]) -> Callable[[paramiko.Channel], None]:
    """Greets well, hears one question, and then plays."""
    def behave(channel: paramiko.Channel) -> None:
        read = past_the_loader(channel)
        decode(read)
        channel.sendall(encode(HELLO))
        decode(read)
        then(channel)
    return behave


@pytest.mark.parametrize("play", [noise, a_zip, huge_body, another_verb, endless_progress_body])
def test_frames_that_break_the_rules_are_counted_over_all_channels(play: Callable[[paramiko.Channel], None]) -> None:
    """Every new channel begins well. Without a count a verb would last as long as its time allows."""
    rogue = Rogue(greeting(play))
    lane, started = lane_to(rogue, patience=600), time.monotonic()
    with pytest.raises(NodeLost, match="broke the protocol"):
        lane.within(lambda agent: agent.probe(["uname"]), 24 * 3600)
    assert rogue.heard.count("exec") == 4 and time.monotonic() - started < 30
    lane.close()
    rogue.close()


def test_node_that_only_greets_is_as_good_as_silent() -> None:
    rogue = Rogue(greeting(lambda channel: channel.close()))
    lane, started = lane_to(rogue, patience=2), time.monotonic()
    heard = lane.heard
    with pytest.raises(NodeLost):
        lane.within(lambda agent: agent.probe(["uname"]), 24 * 3600)
    assert time.monotonic() - started < 10 and lane.heard == heard
    lane.close()
    rogue.close()


def test_signs_of_work_do_not_outlive_the_verb() -> None:
    """A node that says every second that it works is believed until the verb's time is over, in the middle of it."""
    def works(channel: paramiko.Channel) -> None:
        while True:
            channel.sendall(encode(Frame(126, {"done": 1, "of": 2, "what": "x"})))
            time.sleep(0.2)
    rogue = Rogue(greeting(works))
    lane, started = lane_to(rogue, patience=600), time.monotonic()
    with pytest.raises(NodeLost):
        lane.within(lambda agent: agent.put("dataset.age", 0, b"x"), 3)
    assert 2 < time.monotonic() - started < 10 and lane.heard > started
    lane.close()
    rogue.close()


def test_half_a_record_that_never_becomes_whole_is_not_waited_for() -> None:
    """A full disk, or malice: the file is longer than its whole lines, and the job has ended."""
    def torn(channel: paramiko.Channel) -> None:
        channel.sendall(encode(Frame(139, {"offset": 40, "size": 55, "state": "ended", "how": "failed"})))
        time.sleep(5)
    rogue = Rogue(greeting(torn))
    lane = lane_to(rogue, patience=60)
    block = lane.within(lambda agent: agent.records("job", 40, 2, None))
    assert (block.lines, block.how, block.complete) == (b"", "failed", True)
    lane.close()
    rogue.close()


def test_node_without_python_is_unsuitable_at_once() -> None:
    def leave(channel: paramiko.Channel) -> None:
        channel.send_exit_status(127)
        channel.shutdown_write()
        time.sleep(5)
    rogue = Rogue(leave)
    lane, started = lane_to(rogue, patience=60), time.monotonic()
    with pytest.raises(LeaveNode, match="no python3"):
        lane.within(Agent.bye)
    assert time.monotonic() - started < 10
    lane.close()
    rogue.close()


def test_close_ends_a_lane_that_is_still_trying() -> None:
    rogue = Rogue(let_in=False)
    lane = lane_to(rogue, patience=600)
    threading.Timer(0.5, lane.close).start()
    started = time.monotonic()
    with pytest.raises(NodeLost):
        lane.within(Agent.bye)
    assert time.monotonic() - started < 15
    rogue.close()
