"""What the suites of the payload share: the archive, the lab's base model and task, workshops, the environment."""
from __future__ import annotations

import json
from collections.abc import Callable
from itertools import count
from pathlib import Path

import pytest

from orchestrator.lab import model, task
from tests.payload.environment import training_python
from tests.payload.workshop import Record, Workshop, build_archive


@pytest.fixture(scope="session")
def archive(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return build_archive(tmp_path_factory.mktemp("archive") / "payload.zip")


@pytest.fixture(scope="session")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("base") / "model"
    model.build(folder)
    return folder


@pytest.fixture(scope="session")
def visits(tmp_path_factory: pytest.TempPathFactory) -> list[Record]:
    """810 training and 90 held-out rows of the lab's task."""
    path = tmp_path_factory.mktemp("task") / "task.jsonl"
    task.write(path)
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return [{"split": "train" if place < 810 else "held_out", **row} for place, row in enumerate(rows)]


@pytest.fixture(scope="session")
def trainer_python() -> Path:
    return training_python()


@pytest.fixture
def workshop(tmp_path: Path, archive: Path) -> Callable[[], Workshop]:
    """Makes lease folders, as many as a test asks for."""
    numbers = count()

    def make() -> Workshop:
        folder = tmp_path / f"lease-{next(numbers)}"
        folder.mkdir(mode=0o700)
        return Workshop(folder, archive)

    return make
