"""A lane: one connection with one agent on it that comes back by itself. Every verb travels on a lane.

The only retry loop of the room. It must not know the verbs, nor turn a refusal into a decision (driver.py).
"""
from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable
from typing import TypeVar

from ..domain.names import LeaseKey, Reason
from ..errors import HostKeyChanged, LeaveNode, NodeLost
from .channel import AgentChannel, Broken, BrokenRule, NotAnAgent
from .client import Agent
from .connection import Dialer, Unreached
from .frames import FrameError
from .transport import SafeTransport, close_quietly

T = TypeVar("T")
FOREVER = float("inf")
STRIKES = 3                              # broken rules, as opposed to broken lines, that one verb bears


class Lane:
    """Used by one thread at a time; `close` may come from any. `patience`: seconds of trying without contact."""

    def __init__(self, dialer: Dialer, archive: bytes, lease: LeaseKey, patience: float) -> None:
        self._dialer, self._archive, self._lease, self.patience = dialer, archive, lease, patience
        self._transport: SafeTransport | None = None
        self._agent: Agent | None = None
        self._closed, self._spoken = threading.Event(), threading.Event()
        self.heard = time.monotonic()    # when an agent last answered a question on this lane; a greeting is none

    def beside(self, patience: float | None = None) -> Lane:
        """Another lane to the same node, with a connection of its own."""
        other = Lane(self._dialer, self._archive, self._lease, self.patience if patience is None else patience)
        other._spoken = self._spoken
        return other

    def within(self, call: Callable[[Agent], T], seconds: float = FOREVER) -> T:
        """`call` with a living agent, again after every break, while the node does some of it within `patience`.

        A node that only greets is as good as silent. Raises NodeLost after that, after `seconds` (an answer that is
        still awaited included) or after a few broken rules; HostKeyChanged and LeaveNode(UNSUITABLE) at once; Refusal."""
        try:
            return self._within(call, seconds)
        except (HostKeyChanged, LeaveNode, KeyboardInterrupt) as end:
            end.untouched = not self._spoken.is_set()  # type: ignore[union-attr]  # the person's interrupt tells it too
            raise

    def _within(self, call: Callable[[Agent], T], seconds: float) -> T:
        pause, strikes, began = 0.3, 0, time.monotonic()
        end = began + seconds
        while True:
            try:
                agent = self._living()
                agent.channel.until = end
                self._spoken.set()
                result = call(agent)
                self.heard = time.monotonic()
                return result
            except NotAnAgent as error:
                self._drop()
                raise LeaveNode(Reason.UNSUITABLE, detail=str(error)) from error
            except (Unreached, Broken, FrameError) as error:
                self._drop()
                strikes += isinstance(error, FrameError | BrokenRule)
                too_late = time.monotonic() + pause > min(max(began, self.heard) + self.patience, end)
                if too_late or strikes > STRIKES or self._closed.is_set():
                    raise NodeLost(str(error)) from error
            self._closed.wait(pause * random.uniform(0.7, 1.3))  # noqa: S311  # jitter, not a secret
            pause = min(pause * 1.7, 10.0)

    def close(self) -> None:
        """For good. A thread inside `within` leaves it soon with NodeLost."""
        self._closed.set()
        self._drop()

    def _living(self) -> Agent:
        if self._agent is not None and self._agent.channel.alive:
            return self._agent
        if self._closed.is_set():
            raise Unreached("this session is closed")
        if self._transport is None or not self._transport.is_active():
            self._transport = self._dialer.dial()
        self._agent = Agent(AgentChannel(self._transport, self._archive, self._dialer.pace), self._lease)
        if self._closed.is_set():        # closed while we were on our way
            raise Unreached("this session is closed")
        self._agent.channel.heard = 0.0
        return self._agent

    def _drop(self) -> None:
        transport, agent = self._transport, self._agent
        self._transport = self._agent = None
        if agent is not None:
            self.heard = max(self.heard, agent.channel.heard)
            agent.channel.close()
        if transport is not None:
            close_quietly(transport.close)
