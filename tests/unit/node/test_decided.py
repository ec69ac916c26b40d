"""What a node's refusal means for the run: this node cannot, it will not, or it was lost."""
from __future__ import annotations

import pytest

from orchestrator.domain.names import SPENT_OFFERS, Reason
from orchestrator.node.channel import Refusal
from orchestrator.node.driver import decided


@pytest.mark.parametrize(("code", "reason"), [
    ("unsuitable", Reason.UNSUITABLE), ("no-space", Reason.UNSUITABLE), ("internal", Reason.REFUSED),
    ("digest", Reason.REFUSED), ("not-armed", Reason.NODE_LOST), ("a word of its own", Reason.NODE_LOST)])
def test_what_asking_again_does_not_change_spends_the_offer(code: str, reason: Reason) -> None:
    left = decided(Refusal(code, "the disk is full"))
    assert left.reason is reason and "the disk is full" in str(left)
    assert (reason in SPENT_OFFERS) is (reason is not Reason.NODE_LOST)
