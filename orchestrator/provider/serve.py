"""The provider as a running thing: the HTTP face on one thread, the watch over the chain on another.

It starts, waits and stops; it decides nothing. When the watch dies, everything stops with it: a provider that still
quotes but no longer locks anybody out would be worse than none.
"""
from __future__ import annotations

import logging
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from ..errors import Refused, Transient
from .access import Door
from .agent import Agent, Chain, log
from .config import ProviderConfig, load
from .store import Store

if TYPE_CHECKING:
    from .app import Reader

LOCK_OUT_SECONDS = 20


class Provider:
    """One machine on offer, from `start` to `stop`; also a context manager. `url` is known once it is made."""

    def __init__(self, config: ProviderConfig, agent: Agent, chain: Chain, read: Reader) -> None:
        import uvicorn

        from .app import app

        self._agent, self._poll = agent, config.poll_seconds
        self._listener = listener(config.listen_host, config.listen_port)
        self.url = "http://{}:{}".format(*self._listener.getsockname()[:2])
        face = app(agent, read, lambda: (int(time.time()), chain.now()))
        self._server = uvicorn.Server(uvicorn.Config(
            face, log_config=None, log_level="warning", access_log=False, server_header=False, lifespan="off",
            limit_concurrency=64, timeout_keep_alive=5, timeout_graceful_shutdown=5,
            h11_max_incomplete_event_size=16 * 1024, ws="none"))
        self.crashed = False
        self._over = threading.Event()
        self._threads = [threading.Thread(target=self._answer, name="provider http"),
                         threading.Thread(target=self._watch, name="provider watch")]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """Locks nobody out: a renter who is in stays in until the next start sees to it."""
        self._over.set()
        self._agent.wake.set()
        self._server.should_exit = True
        for thread in self._threads:
            if thread.is_alive():
                thread.join()
        self._listener.close()

    def wait(self) -> None:
        self._over.wait()

    def finish(self) -> None:
        """Ask for the end, from a signal handler."""
        self._over.set()

    def __enter__(self) -> Provider:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None,
                 trace: TracebackType | None) -> None:
        self.stop()

    def _answer(self) -> None:
        self._until_over(lambda: self._server.run(sockets=[self._listener]))

    def _watch(self) -> None:
        self._until_over(self._turns)

    def _turns(self) -> None:
        while not self._over.is_set():
            self._agent.wake.clear()
            self._agent.turn()
            self._agent.wake.wait(self._poll)

    def _until_over(self, work: Callable[[], None]) -> None:
        too_early = True
        try:
            work()
            too_early = not self._over.is_set()
        finally:
            self.crashed = self.crashed or too_early
            self._over.set()


def listener(host: str, port: int) -> socket.socket:
    """Bound before anything starts, so that a taken port is a plain error."""
    try:
        return socket.create_server((host, port), backlog=64)
    except OSError as problem:
        raise Refused(f"cannot listen on {host}:{port}: {problem.strerror}", hint="another listen_port") from problem


def provider(config: ProviderConfig, lock_out: Callable[[], None] | None = None) -> Provider:
    """A provider on the real chain. `lock_out` ends the renter's sessions; without it, the configured command does."""
    from .chain import ProviderChain

    chain = ProviderChain.connect(config)
    agent = Agent(config, chain, Store(Path(config.state_folder)), Door(Path(config.authorized_keys)),
                  lock_out or command(config.lock_out))
    return Provider(config, agent, chain, chain.read_request)


def command(words: tuple[str, ...]) -> Callable[[], None]:
    """The configured lock-out. Transient when it failed: it is tried again."""

    def lock_out() -> None:
        if not words:
            return
        try:
            subprocess.run(words, check=True, timeout=LOCK_OUT_SECONDS, stdin=subprocess.DEVNULL,
                           stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        except (OSError, subprocess.SubprocessError) as problem:
            raise Transient(f"the lock-out command failed: {words[0]}") from problem

    return lock_out


def main(arguments: list[str]) -> int:
    """`python -m orchestrator.provider CONFIG.json`: serves until SIGTERM or SIGINT."""
    logging.basicConfig(stream=sys.stderr, level=logging.INFO, format="%(asctime)s %(message)s")
    running = provider(load(Path(arguments[0])))
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: running.finish())
    with running:
        log.info("offering at %s", running.url)
        running.wait()
    return 1 if running.crashed else 0
