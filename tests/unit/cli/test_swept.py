"""What a sweep says at its end."""
from __future__ import annotations

from dataclasses import replace

import pytest

from orchestrator.chain.funds import Swept
from orchestrator.cli.funds import show_swept, swept_tree
from orchestrator.domain.money import POL, USDC, Money

SENT = Swept("0x" + "11" * 20, Money(5_000_000, USDC), Money(10**18, POL), Money(0, USDC), ("0xaa", "0xbb"), False,
             Money(10**15, POL), True)


def test_included_is_not_called_final(capsys: pytest.CaptureFixture[str]) -> None:
    show_swept(SENT)
    assert "not final" not in capsys.readouterr().out
    show_swept(replace(SENT, final=False))
    assert "included, not final yet: the same command again" in capsys.readouterr().out
    assert (swept_tree(SENT)["final"], swept_tree(replace(SENT, final=False))["final"]) == (True, False)
