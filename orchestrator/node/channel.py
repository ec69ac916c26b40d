"""One conversation with the node's agent over one exec channel: a request, its progress, one answer.

Everything read and sent is bounded, in bytes, frames and time. What breaks a rule ends the channel with `BrokenRule`,
which the lane counts; nothing is resynchronised. It must not reconnect (lane.py) nor know what verbs mean (client.py).
"""
from __future__ import annotations

import time
from collections.abc import Callable, Mapping

import paramiko

from ..domain.document import Json
from ..domain.text import clean
from . import agent_loader
from .connection import Pace
from .frames import PROGRESS, REFUSED, REPLY, Frame, FrameError, Verb, decode, encode, number, take
from .transport import SafeTransport, close_quietly, send

FRAMES_PER_SECOND = 200
READ = 256 * 1024
DETAIL_MAX = 600                         # characters of a refusal
SLOWEST = 16 * 1024                      # bytes a second that a line must carry upwards not to count as silence
Progress = Callable[[int, int, str], None]


class Broken(Exception):
    """The channel is of no use any more; another one may be. The message is safe to show."""


class BrokenRule(Broken):
    """Not the line broke, but a rule of the protocol. Lines that are cut do not do that: this node may not go on long."""


class NotAnAgent(Broken):
    """The loader could not start the agent here; another channel will not help."""


class Refusal(Exception):
    """The agent said no. `code` is a word of the protocol, `detail` the node's own words, made harmless."""

    def __init__(self, code: str, detail: str) -> None:
        super().__init__(f"{code}: {detail}" if detail else code)
        self.code, self.detail = code, detail


def ignore(done: int, of: int, what: str) -> None:
    """Progress nobody looks at."""


class AgentChannel:
    """Opens with the loader; `ask` may be called by one thread at a time."""

    def __init__(self, transport: SafeTransport, archive: bytes, pace: Pace) -> None:
        self._pace, self._buffer, self.transport = pace, bytearray(), transport
        self._unanswered = 0             # bytes sent since the last answer; they may still be on a slow line
        self.until = float("inf")        # monotonic time at which whoever holds this channel wants it back
        self.heard = 0.0                 # when the last sound frame came, an answer or a sign of work
        preamble = agent_loader.preamble(archive)
        try:
            self._channel = transport.open_exec(agent_loader.command(archive), pace.channel)
            self._send(preamble, time.monotonic() + 60 + len(preamble) / SLOWEST)
        except (OSError, EOFError, paramiko.SSHException) as error:
            raise Broken(f"no channel: {type(error).__name__}") from error

    @property
    def alive(self) -> bool:
        return not self._channel.closed and self.transport.is_active()

    def close(self) -> None:
        close_quietly(self._channel.close)

    def ask(self, verb: Verb, header: Mapping[str, Json], body: bytes = b"", seconds: float = 60,
            progress: Progress = ignore) -> Frame:
        """The reply within `seconds`, sending included, and never after `until`. Raises Refusal, Broken. A broken
        channel is closed, and one on which an answer is still on its way: it would be taken for the next question's."""
        deadline = min(time.monotonic() + seconds, self.until)
        try:
            self._send(encode(Frame(verb, header, body)), deadline)
            return self._answer(verb, deadline, progress)
        except Refusal:
            raise
        except (OSError, EOFError, FrameError, paramiko.SSHException) as error:
            self.close()
            raise self._why(error) from error
        except BaseException:            # why: whoever interrupts us, an answer is still on its way
            self.close()
            raise

    def _send(self, data: bytes, deadline: float) -> None:
        self._channel.settimeout(max(0.01, min(max(self._pace.silence, 60), deadline - time.monotonic())))
        self._unanswered += len(data)
        send(self._channel, data, deadline)

    def _answer(self, verb: Verb, deadline: float, progress: Progress) -> Frame:
        started, frames = time.monotonic(), 0
        while True:
            frame = decode(lambda n: self._read(n, deadline))
            self._unanswered = 0
            frames += 1
            if frames > FRAMES_PER_SECOND * (time.monotonic() - started + 1):
                raise FrameError("too many frames")
            if frame.type == verb + REPLY:
                self.heard = time.monotonic()
                return frame
            if frame.type == REFUSED:
                raise Refusal(clean(take(frame.header, "code", str), 40), clean(frame.header.get("detail", ""), DETAIL_MAX))
            if frame.type != PROGRESS or frame.body:
                raise FrameError("an answer that was not asked for")
            progress(number(frame.header, "done"), number(frame.header, "of"), clean(frame.header.get("what", ""), 60))
            self.heard = time.monotonic()

    def _read(self, size: int, deadline: float) -> bytes:
        """Exactly `size` bytes; a pause of `silence` seconds, or the deadline, is the end of the channel."""
        while len(self._buffer) < size:
            left = deadline - time.monotonic()
            if left <= 0:
                raise TimeoutError("no answer in time")
            self._channel.settimeout(min(left, self._pace.silence + self._unanswered // SLOWEST))
            chunk = self._channel.recv(READ)
            if not chunk:
                raise EOFError
            self._buffer += chunk
        data = bytes(self._buffer[:size])
        del self._buffer[:size]
        return data

    def _why(self, error: Exception) -> Broken:
        """A hint from the exit code where there is one; the node may lie about it, so it decides nothing but words
        and whether asking again makes sense."""
        if isinstance(error, FrameError):
            return BrokenRule(f"the node broke the protocol: {error}")
        if isinstance(error, TimeoutError):
            return Broken("the node went silent, or took too long")
        code = self._channel.exit_status if self._channel.exit_status_ready() else -1
        if code in agent_loader.FINAL:
            return NotAnAgent(agent_loader.FINAL[code])
        return Broken("the node closed the channel")
