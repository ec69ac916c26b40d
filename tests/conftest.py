"""How the suites share two cores: what looks at the whole machine runs on one worker, in order, the rest on the other."""
from __future__ import annotations

import signal

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer
from xdist.scheduler import LoadScopeScheduling

settings.register_profile("shared cores", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared cores")    # how quickly examples are drawn says more about the neighbours than about us

WHOLE_MACHINE = ("tests/scenario/", "tests/payload/")    # labs, and wipes that search its processes, memory and /dev/shm


class BySuite(LoadScopeScheduling):  # type: ignore[misc]  # xdist has no types
    """One group for them, and one a file for everything else, whose fixtures are then made once."""

    def _split_scope(self, nodeid: str) -> str:
        return "the whole machine" if nodeid.startswith(WHOLE_MACHINE) else nodeid.split("::", 1)[0]


def pytest_configure() -> None:
    """In the background of a shell Ctrl-C is ignored, and children would ignore it too."""
    if signal.getsignal(signal.SIGINT) == signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> BySuite:
    return BySuite(config, log)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """The longest group first, so that nothing waits for it at the end."""
    items.sort(key=lambda item: not item.nodeid.startswith(WHOLE_MACHINE))
