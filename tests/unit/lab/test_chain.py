"""The lab's chain starts, remembers, never goes back in time, and is deployed once."""
from __future__ import annotations

import os
import signal
import stat
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from eth_typing import Address

from orchestrator.errors import Refused
from orchestrator.lab import anvil, chain, pyevm
from orchestrator.lab.chain import ChainProcess, call
from orchestrator.lab.deploy import RENTER_UNITS, deploy, mint
from tests.fakes.labchain import TOOLS, free_port
from tests.fakes.wires import http_server

pytestmark = pytest.mark.money
WHO = "0x" + "11" * 20
KINDS = pytest.mark.parametrize("kind", ["anvil", "py-evm"])


@pytest.fixture
def started(tmp_path: Path) -> Any:
    """Starts chains of one folder; whatever still runs at the end is ended."""
    chains: list[ChainProcess] = []

    def start(kind: str = "auto", folder: Path = tmp_path) -> ChainProcess:
        chains.append(chain.start(folder, free_port(), kind, TOOLS))
        return chains[-1]

    yield start
    for one in chains:
        chain.stop(one)


def time_of(url: str, at: str) -> int:
    return int(call(url, "eth_getBlockByNumber", at, False)["timestamp"], 16)


def until(done: Callable[[], bool], seconds: float = 10) -> None:
    deadline = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < deadline
        time.sleep(0.05)


@KINDS
def test_what_happened_is_still_there_and_time_goes_on(started: Any, tmp_path: Path, kind: str) -> None:
    first = started(kind)
    assert first.kind == kind and chain.running(tmp_path) == first and started(kind) == first
    call(first.url, "anvil_setBalance", WHO, hex(5))
    call(first.url, "evm_increaseTime", 5000)
    call(first.url, "evm_mine")
    newest = time_of(first.url, "latest")
    assert newest >= int(time.time()) + 4990
    chain.stop(first)
    assert chain.running(tmp_path) is None

    second = started("auto")
    assert second.kind == kind                     # a folder keeps its kind
    assert time_of(second.url, "latest") == newest < time_of(second.url, "pending")
    assert int(call(second.url, "eth_getBalance", WHO, "latest"), 16) == 5
    start = time_of(second.url, "pending")
    until(lambda: time_of(second.url, "pending") > start)
    call(second.url, "evm_mine")
    assert time_of(second.url, "latest") > newest


@KINDS
def test_killed_without_warning(started: Any, tmp_path: Path, kind: str) -> None:
    first = started(kind)
    call(first.url, "anvil_setBalance", WHO, hex(5))
    call(first.url, "evm_mine")
    if kind == "anvil":                            # it writes every two seconds
        until(lambda: (tmp_path / "anvil.json").exists() and WHO in (tmp_path / "anvil.json").read_text())
    os.kill(first.pid, signal.SIGKILL)
    chain.stop(first)
    assert int(call(started(kind).url, "eth_getBalance", WHO, "latest"), 16) == 5


def test_half_a_line_is_forgotten(tmp_path: Path) -> None:
    file, who = tmp_path / "blocks", Address(b"\x11" * 20)
    first = pyevm.Chain(file)
    first.give(who, 5)
    with file.open("a") as half:
        half.write('{"at": 17960')
    second = pyevm.Chain(file)
    assert second.headers[-1].hash == first.headers[-1].hash
    second.give(who, 6)
    assert pyevm.Chain(file).state().get_balance(who) == 6


def test_money_is_laid_out_once(started: Any, tmp_path: Path) -> None:
    first = started("anvil")
    money = deploy(first.url, tmp_path)
    height = call(first.url, "eth_blockNumber")
    assert deploy(first.url, tmp_path) == money and call(first.url, "eth_blockNumber") == height
    for key in (money.renter_key, money.provider_key):
        assert stat.S_IMODE(Path(key).stat().st_mode) == 0o600
    mint(first.url, tmp_path, WHO, 5)
    balance = "0x70a08231" + WHO[2:].rjust(64, "0")
    assert int(call(first.url, "eth_call", {"to": money.token, "data": balance}, "latest"), 16) == 5
    assert RENTER_UNITS == 1_000_000_000
    chain.stop(first)
    assert deploy(started("anvil").url, tmp_path) == money


def test_only_a_lab_is_deployed_to(tmp_path: Path) -> None:
    polygon = b'{"jsonrpc":"2.0","id":0,"result":"0x89"}'
    with http_server(lambda _: (200, "application/json", polygon)) as url:
        with pytest.raises(Refused, match="chain 137 is no lab"):
            deploy(url, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_port_that_is_taken(tmp_path: Path) -> None:
    with http_server(lambda _: None) as url:
        with pytest.raises(Refused, match="is in use"):
            chain.start(tmp_path, int(url.rsplit(":", 1)[1]), "py-evm")
    assert chain.running(tmp_path) is None


def test_a_file_that_is_no_program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's anvil for another system is passed over, and "none" means none."""
    kept = tmp_path / f"anvil-{anvil.VERSION}"
    kept.write_text("#!/bin/sh\nexit 0\n")
    kept.chmod(0o700)
    other = tmp_path / "other"
    other.write_bytes(b"\x00\x01")
    other.chmod(0o700)
    monkeypatch.setenv("PATH", "")
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("SEALTUNE_ANVIL", str(other))
    assert anvil.find(tmp_path) == kept
    monkeypatch.setenv("SEALTUNE_ANVIL", "none")
    assert anvil.find(tmp_path) is None
    with pytest.raises(Refused, match="no anvil"):
        chain.start(tmp_path / "lab", free_port(), "anvil")


def test_a_chain_that_does_not_come_up_leaves_nothing_running(tmp_path: Path) -> None:
    (tmp_path / "pyevm.blocks").mkdir()
    start = time.monotonic()
    with pytest.raises(Refused, match="did not come up") as problem:
        chain.start(tmp_path, free_port(), "py-evm")
    assert "chain.log" in str(problem.value.hint) and time.monotonic() - start < chain.PATIENCE_S
    assert chain.running(tmp_path) is None
