"""Keys come from files that only we can read, and never show."""
from __future__ import annotations

import copy
import pickle
from pathlib import Path

import pytest

from orchestrator.chain import wallet
from orchestrator.chain.wallet import Wallet
from orchestrator.errors import BadInput

pytestmark = pytest.mark.money
KEY = bytes(range(1, 33))


def test_a_keystore_comes_back(tmp_path: Path) -> None:
    path = tmp_path / "wallet.json"
    made = wallet.save(path, KEY, "pass word")
    assert path.stat().st_mode & 0o777 == 0o600 and KEY.hex() not in path.read_text()
    assert wallet.load(path, "pass word").address == made.address
    with pytest.raises(BadInput, match=r"wrong password for wallet\.json") as problem:
        wallet.load(path, "pass")
    assert problem.value.__cause__ is None
    with pytest.raises(BadInput, match="exists already"):
        wallet.save(path, KEY, "other")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["wallet.json"]


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"crypto": {}}', '{"version": 3, "crypto": 5}', "\x00"])
def test_files_that_are_no_keystore(tmp_path: Path, content: str) -> None:
    path = tmp_path / "w.json"
    path.write_text(content)
    with pytest.raises(BadInput):
        wallet.load(path, "x")
    with pytest.raises(BadInput, match="cannot read"):
        wallet.load(tmp_path / "none.json", "x")


def test_a_labs_key_is_made_once_and_is_ours_alone(tmp_path: Path) -> None:
    path = tmp_path / "keys" / "renter.key"
    made = wallet.lab_key(path)
    assert wallet.lab_key(path).address == made.address == wallet.load_key(path).address
    path.chmod(0o644)
    with pytest.raises(BadInput, match="can be read by others"):
        wallet.load_key(path)
    path.chmod(0o600)
    path.write_text("0x00")
    with pytest.raises(BadInput):
        wallet.load_key(path)


def test_the_key_never_shows() -> None:
    made = Wallet(KEY)
    shown = f"{made} {made!r} {vars(type(made)).get('__slots__')}"
    assert made.address in shown and KEY.hex() not in shown
    for attempt in (pickle.dumps, copy.copy, copy.deepcopy):
        with pytest.raises(TypeError, match="not copied"):
            attempt(made)
    for bad in (bytes(32), b"short", b"\xff" * 32):
        with pytest.raises(BadInput, match="not a private key") as problem:
            Wallet(bad)
        assert problem.value.__suppress_context__
