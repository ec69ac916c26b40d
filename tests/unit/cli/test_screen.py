"""What a person sees while long things go on, and that their own server is no market."""
from __future__ import annotations

import re

import pytest

from orchestrator.cli.person import foreseen, sheet
from orchestrator.cli.rentals import line, row
from orchestrator.cli.screen import Lines, told, watched
from orchestrator.domain.document import encode
from orchestrator.domain.event import GENESIS, Deed, Event, Kind, Owed
from orchestrator.domain.evidence import NO_GPU, Check, HardwareReport, Trust
from orchestrator.domain.lease import Ending, Lease, Offer
from orchestrator.domain.money import USDC, Money, Rate
from orchestrator.domain.names import Digest, Instant, LeaseId, LeaseKey, Reason, RunId
from orchestrator.domain.progress import Working
from orchestrator.domain.training import Forecast
from orchestrator.planning.plan import agreement
from orchestrator.steps import Waiting
from orchestrator.sweep import Leftover

FREE = Rate(Money(0, USDC))
MARKET_WORDS = ("market", "deposit", "rent", "lease", "offer", "settl")


def begun(step: str, meant: object) -> Event:
    public, private = encode(meant)
    return Event(1, GENESIS, Instant(0), Deed("lease-1", step), Kind.INTENDED, (), (), public, private)


def lease(market: str) -> Lease:
    return Lease(market, LeaseKey("1" * 64), LeaseId("1"), FREE, Instant(0))


@pytest.mark.parametrize(("seen", "text"), [
    (Working("wiping files", 3, 1204), "  wiping files: 3 of 1,204"),
    (Working("scanning files", 5120, 0), "  scanning files: 5,120"),
    (Working("installing torch", 12, 46), "  installing torch: 12 of 46"),
    (Working("stopping the job", 0, 0), "  stopping the job")])
def test_a_long_verb_says_how_far_it_is(seen: Working, text: str) -> None:
    assert watched(seen) == text


def test_progress_is_no_flood(capsys: pytest.CaptureFixture[str]) -> None:
    lines = Lines()
    for done in range(1, 2000):
        lines.seen(Working("wiping files", done, 2000))
    assert capsys.readouterr().err == "  wiping files: 1 of 2,000\n"


def test_who_does_not_answer_is_waited_for_until_a_time_that_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    """An unreachable hub was waited for in silence."""
    lines = Lines()
    for _ in range(3):
        lines.waiting("hub https://hub.example does not answer", Instant(0))
    (told,) = capsys.readouterr().err.splitlines()
    assert re.fullmatch(r"  hub https://hub.example does not answer; trying again until \d\d:\d\d:\d\d", told)


@pytest.mark.parametrize(("step", "meant"), [
    ("meet", Waiting(lease("ssh"), Instant(0))), ("end", Ending(lease("ssh"), Reason.DONE, None, None)),
    ("settle", lease("ssh"))])
def test_on_ones_own_server_no_word_of_a_market(step: str, meant: object) -> None:
    (line,) = told(begun(step, meant))
    assert not any(word in line for word in MARKET_WORDS)


def test_elsewhere_it_stays_what_it_is() -> None:
    assert told(begun("end", Ending(lease("open"), Reason.DONE, None, None))) == ["ending the lease"]


def test_the_page_of_ones_own_server() -> None:
    own = Offer("ssh", "own server", FREE, None, 10**6, stranger=False, bounded=False, shown=NO_GPU, where="gpu.example.net")
    assert sheet(agreement(own, 3600, None)) == [
        f"server      gpu.example.net, your own server, {NO_GPU}",
        "note        your own server: nothing is rented or paid"]


@pytest.mark.parametrize(("forecast", "lines"), [
    (Forecast("RTX 4090", 24564, (9216, 10240, 12288), "fits", 1800, (1800, 3600, 7200)),
     ["memory      about 10.0 of 24.0 GiB on the GPU (9.0 to 12.0): fits, 58 % to spare",
      "time        about 1 hour (30 minutes to 2 hours), of it 30 minutes training and evaluation"]),
    (Forecast(memory=(1024, 2048, 3072), why="what your server has is measured when the run is there"),
     ["memory      about 2.0 GiB on the GPU (1.0 to 3.0)",
      "time        not known: what your server has is measured when the run is there"]),
    (Forecast("Quadro", 1000, (1024, 2048, 3072), "does not fit", why="how fast Quadro is, is not known here"),
     ["memory      about 2.0 of 1.0 GiB on the GPU (1.0 to 3.0): does not fit",
      "time        not known: how fast Quadro is, is not known here"])])
def test_the_page_says_what_is_expected(forecast: Forecast, lines: list[str]) -> None:
    assert foreseen(forecast) == lines


@pytest.mark.parametrize(("gpu", "line"), [("", f"  {NO_GPU}"), ("NVIDIA H200", "  NVIDIA H200")])
def test_the_hardware_is_named_or_its_absence(gpu: str, line: str) -> None:
    report = HardwareReport(Digest("sha256:hw"), Trust.CLAIMED, (Check(1, "nvidia-smi can be read", True),), "", gpu)
    public, private = encode(report)
    seen = Event(1, GENESIS, Instant(0), Deed("lease-1", "inspect"), Kind.DONE, (), (), public, private)
    assert told(seen) == [line]


def test_rentals_speak_of_a_server() -> None:
    left = Leftover(RunId("mine-1"), "lease-1", "leaked", lease("ssh"), tuple(
        Owed("lease-1", what, Deed("lease-1", "open"), True) for what in ("lease", "deposit", "data", "keeper")))
    told = line(row(left, 0))
    assert "your own server" in told and told.endswith("to be wiped: data, keeper")
    assert "deposit" not in told and "USDC" not in told
