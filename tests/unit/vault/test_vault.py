"""Secrets in files: made once, read only when safely ours, gone when destroyed."""
from __future__ import annotations

import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pyrage
import pytest

from orchestrator.vault.controller import controller_key, controller_public
from orchestrator.vault.files import VaultTrouble
from orchestrator.vault.vault import FileVault

pytestmark = pytest.mark.sealed
ROOT = Path(__file__).resolve().parents[3]
PREFIX = {"ssh": "ssh-ed25519 AAAA", "age": "age1", "token": "sha256:"}


@pytest.fixture
def vault(tmp_path: Path) -> FileVault:
    return FileVault(tmp_path / "keys")


@pytest.mark.parametrize("kind", PREFIX)
class TestEveryKind:
    def test_made_once(self, vault: FileVault, tmp_path: Path, kind: str) -> None:
        public = vault.create("lease-1/key", kind)
        assert public.startswith(PREFIX[kind]) and len(public.split()) <= 2
        assert FileVault(tmp_path / "keys").create("lease-1/key", kind) == public
        assert vault.create("lease-2/key", kind) != public

    def test_for_us_only(self, vault: FileVault, tmp_path: Path, kind: str) -> None:
        old = os.umask(0)
        try:
            vault.create("home", kind)
        finally:
            os.umask(old)
        file, = (tmp_path / "keys").iterdir()
        assert file.stat().st_mode & 0o777 == 0o600 and file.parent.stat().st_mode & 0o777 == 0o700

    def test_destroyed(self, vault: FileVault, tmp_path: Path, kind: str) -> None:
        public = vault.create("lease-1/key", kind)
        vault.destroy("lease-1/key")
        vault.destroy("lease-1/key")
        assert list((tmp_path / "keys").iterdir()) == []
        with pytest.raises(VaultTrouble, match="no key lease-1/key"):
            vault.read("lease-1/key")
        assert vault.create("lease-1/key", kind) != public

    def test_another_kind_under_the_name(self, vault: FileVault, kind: str) -> None:
        vault.create("k", kind)
        for other in PREFIX.keys() - {kind}:
            with pytest.raises(VaultTrouble) as caught:
                vault.create("k", other)
            assert vault.read("k").decode()[30:40] not in str(caught.value)

    def test_many_at_once_get_the_same(self, vault: FileVault, tmp_path: Path, kind: str) -> None:
        script = ("import sys; from pathlib import Path; from orchestrator.vault.vault import FileVault; "
                  f"print(FileVault(Path(sys.argv[1])).create('k', {kind!r}))")

        def one(_: int) -> str:
            return subprocess.run([sys.executable, "-c", script, str(tmp_path / "keys")], cwd=ROOT, text=True,
                                  capture_output=True, check=True).stdout.strip()

        with ThreadPoolExecutor(3) as pool:
            assert set(pool.map(one, range(3))) == {vault.create("k", kind)}
        assert [p.name for p in (tmp_path / "keys").iterdir()] == ["k"]


def test_the_halves_belong_together(vault: FileVault, tmp_path: Path) -> None:
    recipient = vault.create("data", "age")
    identity = pyrage.x25519.Identity.from_str(vault.read("data").decode())
    assert pyrage.decrypt(pyrage.encrypt(b"rows", [pyrage.x25519.Recipient.from_str(recipient)]), [identity]) == b"rows"
    line = vault.create("ssh", "ssh")
    shown = subprocess.run(["ssh-keygen", "-y", "-f", str(tmp_path / "keys" / "ssh")], capture_output=True, text=True,
                           check=True).stdout.strip()
    assert shown == line and shown.count(" ") == 1
    assert vault.create("t", "token") and len(bytes.fromhex(vault.read("t").decode())) == 24


class TestNotSafelyOurs:
    @pytest.mark.parametrize("mode", [0o640, 0o604, 0o660, 0o666, 0o644])
    def test_others_could_read(self, vault: FileVault, tmp_path: Path, mode: int) -> None:
        vault.create("k", "token")
        (tmp_path / "keys" / "k").chmod(mode)
        for ask in (lambda: vault.read("k"), lambda: vault.create("k", "token")):
            with pytest.raises(VaultTrouble, match="others may read"):
                ask()

    def test_others_could_place(self, vault: FileVault, tmp_path: Path) -> None:
        vault.create("k", "token")
        (tmp_path / "keys").chmod(0o755)
        with pytest.raises(VaultTrouble, match="others may look"):
            vault.create("other", "token")

    def test_a_link_is_not_followed(self, vault: FileVault, tmp_path: Path) -> None:
        vault.create("k", "token")
        target = tmp_path / "elsewhere"
        (tmp_path / "keys" / "k").rename(target)
        (tmp_path / "keys" / "k").symlink_to(target)
        with pytest.raises(VaultTrouble):
            vault.read("k")
        before = target.read_bytes()
        vault.destroy("k")
        assert target.read_bytes() == before and not (tmp_path / "keys" / "k").is_symlink()

    def test_a_folder_that_is_a_link(self, tmp_path: Path) -> None:
        (tmp_path / "real").mkdir(mode=0o700)
        (tmp_path / "keys").symlink_to(tmp_path / "real")
        with pytest.raises(VaultTrouble):
            FileVault(tmp_path / "keys").create("k", "token")

    def test_another_owner(self, vault: FileVault, tmp_path: Path) -> None:
        vault.create("k", "token")
        if os.geteuid() == 0:                # only root can give a file away
            os.chown(tmp_path / "keys" / "k", 12345, -1)
            with pytest.raises(VaultTrouble, match="another user"):
                vault.read("k")
            os.chown(tmp_path / "keys", 12345, -1)
            vault = FileVault(tmp_path / "keys")
        else:
            vault = FileVault(Path("/"))
        with pytest.raises(VaultTrouble, match="not a folder of yours"):
            vault.create("k", "token")

    def test_a_pipe(self, vault: FileVault, tmp_path: Path) -> None:
        vault.create("x", "token")
        os.mkfifo(tmp_path / "keys" / "k", 0o600)
        with pytest.raises(VaultTrouble):
            vault.read("k")

    def test_not_a_key_at_all(self, vault: FileVault, tmp_path: Path) -> None:
        vault.create("x", "token")
        for kind in PREFIX:
            (tmp_path / "keys" / "k").write_bytes(b"\x00\xff nonsense")
            (tmp_path / "keys" / "k").chmod(0o600)
            with pytest.raises(VaultTrouble, match="no secret of kind"):
                vault.create("k", kind)


@pytest.mark.parametrize("name", ["", "..", "../x", "/etc/x", "a/b/c", "a//b", ".k", "A", "a b", "k\n", "a/../b"])
def test_a_name_is_never_a_path(vault: FileVault, name: str) -> None:
    for ask in (lambda: vault.create(name, "age"), lambda: vault.read(name), lambda: vault.destroy(name)):
        with pytest.raises(ValueError, match="not a name"):
            ask()


def test_a_draft_of_a_dead_process_goes_too(vault: FileVault, tmp_path: Path) -> None:
    vault.create("k", "token")
    os.link(tmp_path / "keys" / "k", tmp_path / "keys" / ".k.4242")
    vault.destroy("k")
    assert list((tmp_path / "keys").iterdir()) == []


def test_what_is_destroyed_was_overwritten(vault: FileVault, tmp_path: Path) -> None:
    vault.create("k", "age")
    secret = vault.read("k")
    os.link(tmp_path / "keys" / "k", tmp_path / "kept")
    vault.destroy("k")
    assert len((tmp_path / "kept").read_bytes()) == len(secret) and (tmp_path / "kept").read_bytes() != secret


def test_nothing_of_it_is_shown(vault: FileVault) -> None:
    vault.create("k", "age")
    assert b"AGE-SECRET-KEY" in vault.read("k") and "AGE-SECRET" not in repr(vault) + str(vars(vault))


class TestController:
    def test_made_once_at_first_use(self, tmp_path: Path) -> None:
        path = controller_key(tmp_path / "state")
        secret = path.read_bytes()
        assert controller_key(tmp_path / "state").read_bytes() == secret and path.stat().st_mode & 0o777 == 0o600
        assert controller_public(tmp_path / "state").startswith("ssh-ed25519 AAAA")

    def test_refused_when_others_may_read_it(self, tmp_path: Path) -> None:
        controller_key(tmp_path).chmod(0o644)
        with pytest.raises(VaultTrouble):
            controller_key(tmp_path)
