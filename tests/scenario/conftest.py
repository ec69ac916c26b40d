"""The lab of the session, and a laptop a test that must give back everything it took."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenario import lab as labs
from tests.scenario.data import parcels
from tests.scenario.lab import Finished, Lab, Laptop, files_of


@pytest.fixture(scope="session")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    with labs.lab(tmp_path_factory.mktemp("lab")) as found:
        yield found


@pytest.fixture
def laptop(lab: Lab, tmp_path: Path) -> Iterator[Laptop]:
    """Settings short enough to see a leak. After the test nothing is open, nobody is let in, nothing runs."""
    found = lab.laptop(tmp_path / "laptop", contact_seconds=6)
    yield found
    found.leave()
    left = lab.open_rentals()
    if left:                             # or the next test could rent nothing
        found.set(contact_seconds=1)
        lab.owner.sealtune("end", "--leaked", "--yes", "--unknown-runs")
    assert left == [], "the test left a rental open"
    assert lab.let_in() == "", "the test left a key in authorized_keys"
    labs.eventually(lambda: not lab.of_renter(), "no process of the renter is left", 30)


@pytest.fixture(scope="session")
def finished(lab: Lab, tmp_path_factory: pytest.TempPathFactory) -> Finished:
    """One whole run of 500 rows of one's own, and how the world stood before and after it."""
    laptop = lab.laptop(tmp_path_factory.mktemp("finished") / "laptop")
    page = laptop.write_run(parcels(500), output="./adapter")
    sandbox, usdc = files_of(lab.sandbox), lab.usdc
    done = laptop.sealtune("run", page, "--yes", "--json")
    return Finished(laptop, done.tree, usdc, lab.usdc, sandbox, files_of(lab.sandbox), lab.let_in())
