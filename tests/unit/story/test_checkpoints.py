"""What an earlier lease brought home: only a checkpoint that does not open is passed over, never a fault of the laptop."""
from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from orchestrator.domain.event import owed
from orchestrator.domain.spool import Spool
from orchestrator.errors import DoesNotOpen, SealtuneError
from orchestrator.rental import run
from tests.fakes.laptop import FakeSealer, FakeVault, house
from tests.fakes.world import JOB_SECONDS, World
from tests.scenario.matrix import task

pytestmark = pytest.mark.noleak


class Picky(FakeSealer):
    """The newest checkpoint raises `problem`."""

    def __init__(self, w: World, problem: SealtuneError) -> None:
        super().__init__(w)
        self.problem, self.asked = problem, list[str]()

    def reseal(self, sealed: Path, identity: bytes, folder: Path, name: str, recipient: str) -> Spool:
        self.asked.append(sealed.name)
        if len(self.asked) == 1:
            raise self.problem
        return super().reseal(sealed, identity, folder, name, recipient)


def dying() -> World:
    """The first node dies in the middle of the training."""
    return World("escrow", faults={"node dies at": JOB_SECONDS // 2})


def test_one_that_does_not_open_is_passed_over() -> None:
    w = dying()
    sealer = Picky(w, DoesNotOpen("checkpoint is damaged or cut short"))
    run(replace(house(w), sealer=sealer), task())
    assert len(w.rentals) == 2 and len(sealer.asked) == 2
    assert 0 < w.rentals[1].node.base_done == int(sealer.asked[1].removeprefix("checkpoint-").removesuffix(".age"))


def test_a_full_disk_of_the_laptop_is_told_and_the_checkpoint_kept() -> None:
    """Nothing is trained anew from the start for it: all is given back, and `resume` goes on from the checkpoint."""
    w = dying()
    sealer = Picky(w, SealtuneError("checkpoint-in.age: no space left on device", "make room on this disk"))
    with pytest.raises(SealtuneError, match="no space left") as told:
        run(replace(house(w), sealer=sealer), task())
    assert told.value.hint == "make room on this disk" and len(sealer.asked) == 1
    assert {o.scope for o in owed(w.events)} <= {"run"} and w.rentals[1].node.base_done == 0
    run(replace(house(w), sealer=sealer), task())            # there is room now
    assert w.rentals[-1].node.base_done > 0


def test_a_lost_key_is_told() -> None:
    class Lost(FakeVault):
        def read(self, name: str) -> bytes:
            if name == "home" and len(w.rentals) == 2:
                raise SealtuneError("no such key: home")
            return super().read(name)

    w = dying()
    with pytest.raises(SealtuneError, match="no such key"):
        run(replace(house(w), vault=Lost(w)), task())
