"""The Sealer port with real age and zstd, the child process included."""
from __future__ import annotations

import hashlib
import json
import os
import random
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pyrage
import pytest
import zstandard

from orchestrator import ports
from orchestrator.domain.spool import PART_BYTES, Spool
from orchestrator.errors import BadInput, DoesNotOpen, SealtuneError, Transient
from orchestrator.sealing import AgeSealer, open_sealed

pytestmark = pytest.mark.sealed
CANARY = b"Ottilie Winterhalter"
MOST = 64 * 2**20


@dataclass(frozen=True)
class Key:
    public: str
    private: bytes


def key() -> Key:
    made = pyrage.x25519.Identity.generate()
    return Key(str(made.to_public()), str(made).encode() + b"\n")


@pytest.fixture
def sealer() -> ports.Sealer:
    return AgeSealer()


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b"".join(CANARY + b" %d\n" % n for n in range(5000)))
    return path


def opened(spool: Spool, with_key: Key) -> bytes:
    made = pyrage.decrypt(spool.path.read_bytes(), [pyrage.x25519.Identity.from_str(with_key.private.decode().strip())])
    with zstandard.ZstdDecompressor().stream_reader(made) as stream:
        return stream.read()


def test_sealed_and_opened(sealer: ports.Sealer, rows: Path, tmp_path: Path) -> None:
    mine = key()
    spool = sealer.seal(rows, tmp_path / "lease-1", "dataset.age", mine.public)
    assert opened(spool, mine) == rows.read_bytes()
    assert spool.path.stat().st_mode & 0o777 == 0o600 and spool.size == spool.path.stat().st_size
    assert CANARY not in spool.path.read_bytes()
    assert {p.name for p in (tmp_path / "lease-1").iterdir()} == {"dataset.age", "dataset.age.json"}


def test_the_parts_are_those_of_the_file(sealer: ports.Sealer, tmp_path: Path) -> None:
    noise = tmp_path / "noise"
    noise.write_bytes(random.Random(1).randbytes(PART_BYTES * 2 + 100_000))
    spool = sealer.seal(noise, tmp_path / "s", "dataset.age", key().public)
    data = spool.path.read_bytes()
    parts = [data[n:n + PART_BYTES] for n in range(0, len(data), PART_BYTES)]
    assert list(spool.parts) == ["sha256:" + hashlib.sha256(p).hexdigest() for p in parts] and len(parts) == 3
    assert spool.sha256 == "sha256:" + hashlib.sha256(data).hexdigest()


def test_a_complete_spool_is_returned_as_it_is(sealer: ports.Sealer, rows: Path, tmp_path: Path) -> None:
    mine, folder = key(), tmp_path / "s"
    first = sealer.seal(rows, folder, "dataset.age", mine.public)
    rows.unlink()
    assert sealer.seal(rows, folder, "dataset.age", mine.public) == first


@pytest.mark.parametrize("harm", ["cut", "flip", "table", "no table", "other key"])
def test_anything_else_is_sealed_anew(sealer: ports.Sealer, rows: Path, tmp_path: Path, harm: str) -> None:
    mine, folder = key(), tmp_path / "s"
    first = sealer.seal(rows, folder, "dataset.age", mine.public)
    table = folder / "dataset.age.json"
    if harm == "cut":
        os.truncate(first.path, first.size - 1)
    elif harm == "flip":
        data = bytearray(first.path.read_bytes())
        data[-1] ^= 1
        first.path.write_bytes(data)
    elif harm == "table":
        table.write_text("[]")
    elif harm == "no table":
        table.unlink()
    else:
        mine = key()
    again = sealer.seal(rows, folder, "dataset.age", mine.public)
    assert again.sha256 != first.sha256 and opened(again, mine) == rows.read_bytes()


def test_resealed_for_the_next_node(sealer: ports.Sealer, tmp_path: Path) -> None:
    home, node, folder = key(), key(), tmp_path / "lease-2"
    sealed = tmp_path / "checkpoint-40.age"
    sealed.write_bytes(pyrage.encrypt(CANARY * 100_000, [pyrage.x25519.Recipient.from_str(home.public)]))
    spool = sealer.reseal(sealed, home.private, folder, "checkpoint-in.age", node.public)
    assert open_sealed(spool.path, node.private, MOST) == CANARY * 100_000
    with pytest.raises(Transient, match=r"checkpoint-in\.age is not sealed to this run's key"):
        open_sealed(spool.path, home.private, MOST)
    sealed.unlink()
    assert sealer.reseal(sealed, home.private, folder, "checkpoint-in.age", node.public) == spool


@pytest.mark.parametrize("harm", ["cut", "flip", "stranger", "missing", "link", "no age file"])
def test_what_does_not_open_leaves_nothing(sealer: ports.Sealer, tmp_path: Path, harm: str) -> None:
    home, folder, sealed = key(), tmp_path / "lease-2", tmp_path / "checkpoint-40.age"
    to = key() if harm == "stranger" else home
    data = bytearray(pyrage.encrypt(CANARY * 100_000, [pyrage.x25519.Recipient.from_str(to.public)]))
    if harm == "cut":
        del data[-70_000:]
    elif harm == "flip":
        data[len(data) // 2] ^= 1
    elif harm == "no age file":
        data = bytearray(CANARY * 1000)
    sealed.write_bytes(data)
    if harm in ("missing", "link"):
        sealed.rename(tmp_path / "elsewhere")
    if harm == "link":
        sealed.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(DoesNotOpen, match=r"checkpoint-40\.age"):      # nobody will bring it again: not worth waiting for
        sealer.reseal(sealed, home.private, folder, "checkpoint-in.age", key().public)
    with pytest.raises(Transient, match=r"checkpoint-40\.age"):
        open_sealed(sealed, home.private, MOST)
    assert not folder.exists() or not list(folder.iterdir())


def test_what_the_laptop_lacks_is_no_fault_of_the_file(sealer: ports.Sealer, tmp_path: Path) -> None:
    """A checkpoint that opens is never taken for one that does not: no room, no such key, no right to write."""
    home, sealed, folder = key(), tmp_path / "checkpoint-40.age", tmp_path / "lease-2"
    sealed.write_bytes(pyrage.encrypt(CANARY, [pyrage.x25519.Recipient.from_str(home.public)]))
    with pytest.raises(SealtuneError) as no_key:
        sealer.reseal(sealed, b"AGE-SECRET-KEY-1", folder, "checkpoint-in.age", key().public)
    (folder / "checkpoint-in.age.part").mkdir(parents=True)      # nothing can be written there
    with pytest.raises(SealtuneError) as no_place:
        sealer.reseal(sealed, home.private, folder, "checkpoint-in.age", key().public)
    for problem in (no_key.value, no_place.value):
        assert not isinstance(problem, DoesNotOpen | Transient)


def test_opening_is_bounded(tmp_path: Path) -> None:
    mine, sealed = key(), tmp_path / "adapter.age"
    sealed.write_bytes(pyrage.encrypt(bytes(1_000_000), [pyrage.x25519.Recipient.from_str(mine.public)]))
    assert len(open_sealed(sealed, mine.private, 1_000_000)) == 1_000_000
    for most in (999_999, 10):
        with pytest.raises(Transient, match=r"adapter\.age"):
            open_sealed(sealed, mine.private, most)


@pytest.mark.parametrize("recipient", ["age1plugin/../x", "age1yubikey1qwe", "ssh-ed25519 AAAA", "", "-h"])
def test_only_x25519_recipients(sealer: ports.Sealer, rows: Path, tmp_path: Path, recipient: str) -> None:
    with pytest.raises(BadInput, match="not an age key"):
        sealer.seal(rows, tmp_path / "s", "dataset.age", recipient)
    assert not list((tmp_path / "s").iterdir())


def test_only_x25519_identities(tmp_path: Path) -> None:
    (tmp_path / "adapter.age").write_bytes(pyrage.encrypt(b"x", [pyrage.x25519.Recipient.from_str(key().public)]))
    for identity in (b"AGE-PLUGIN-X-1QQQ", b"", b"\xff" * 100_000):
        with pytest.raises(BadInput, match="not an age key"):
            open_sealed(tmp_path / "adapter.age", identity, MOST)


def test_a_source_that_is_not_there(sealer: ports.Sealer, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match="no such file"):
        sealer.seal(tmp_path / "none", tmp_path / "s", "dataset.age", key().public)


@pytest.mark.parametrize("name", ["../x.age", "/x.age", "x", "a/b.age"])
def test_names_are_ours(sealer: ports.Sealer, rows: Path, tmp_path: Path, name: str) -> None:
    with pytest.raises(ValueError, match="not the name of a sealed file"):
        sealer.seal(rows, tmp_path / "s", name, key().public)


def test_discard(sealer: ports.Sealer, rows: Path, tmp_path: Path) -> None:
    folder = tmp_path / "s"
    sealer.seal(rows, folder, "dataset.age", key().public)
    (folder / "checkpoint-in.age.part").write_bytes(b"half")
    (folder / "records.jsonl").write_text("kept")
    sealer.discard(folder)
    assert [p.name for p in folder.iterdir()] == ["records.jsonl"]
    (folder / "records.jsonl").unlink()
    sealer.discard(folder)
    sealer.discard(folder)
    assert not folder.exists()


def test_the_table_shows_no_path(sealer: ports.Sealer, rows: Path, tmp_path: Path) -> None:
    sealer.seal(rows, tmp_path / "s", "dataset.age", key().public)
    assert set(json.loads((tmp_path / "s" / "dataset.age.json").read_text())["spool"]) == {"name", "sha256", "size",
                                                                                           "parts"}


def test_no_child_is_left(sealer: ports.Sealer, rows: Path, tmp_path: Path) -> None:
    sealer.seal(rows, tmp_path / "s", "dataset.age", key().public)
    children = subprocess.run(["ps", "-A", "-ww", "-o", "ppid=,args="], capture_output=True, text=True).stdout
    assert not [c for c in children.splitlines() if c.split()[0] == str(os.getpid()) and "age_child" in c]
