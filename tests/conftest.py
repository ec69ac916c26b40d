"""How the suites share two cores: what looks at the whole machine runs on one worker, in order, the rest on the other."""
from __future__ import annotations

from pathlib import Path

import pytest

WHOLE_MACHINE = ("scenario", "payload")  # labs, and wipes that search this machine's processes, memory and /dev/shm


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """One group for them, and one a file for everything else, whose fixtures are then made once."""
    for item in items:
        suite = item.path.relative_to(Path(__file__).parent).parts[0]
        name = "whole machine" if suite in WHOLE_MACHINE else str(item.path)
        item.add_marker(pytest.mark.xdist_group(name))
    items.sort(key=lambda item: item.path.relative_to(Path(__file__).parent).parts[0] not in WHOLE_MACHINE)
