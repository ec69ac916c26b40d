"""A password comes from a file that is ours alone, or from a keyring that is one."""
from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import keyring
import pytest
from keyring.backend import KeyringBackend
from keyring.backends import SecretService, fail, null
from keyring.backends.chainer import ChainerBackend
from keyring.errors import KeyringLocked
from keyrings.alt.file import EncryptedKeyring, PlaintextKeyring

from orchestrator.errors import BadInput, Refused
from orchestrator.vault import passwords
from orchestrator.vault.files import VaultTrouble

pytestmark = pytest.mark.money
WHO = "0xAbCdEf" + "0" * 34


class Desktop(KeyringBackend):
    """Stands for a desktop's keyring, which no test machine has: the class by which it is known, kept in memory."""

    priority = 1

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], str] = {}
        self.locked = False

    def set_password(self, service: str, username: str, password: str) -> None:
        if self.locked:
            raise KeyringLocked("unlock me")
        self.kept[service, username] = password

    def get_password(self, service: str, username: str) -> str | None:
        if self.locked:
            raise KeyringLocked("unlock me")
        return self.kept.get((service, username))


Desktop.__module__, Desktop.__qualname__ = SecretService.Keyring.__module__, SecretService.Keyring.__qualname__


@pytest.fixture(autouse=True)
def chosen() -> Iterator[None]:
    before = keyring.get_keyring()
    yield
    keyring.set_keyring(before)


def test_from_a_file(tmp_path: Path) -> None:
    path = tmp_path / "pw"
    path.write_text("pass wörd \r\nsecond line\n")
    path.chmod(0o600)
    assert passwords.from_file(path) == "pass wörd "
    path.chmod(0o640)
    with pytest.raises(VaultTrouble, match="others may read"):
        passwords.from_file(path)
    (tmp_path / "link").symlink_to(path)
    path.chmod(0o600)
    with pytest.raises(VaultTrouble, match="cannot open"):
        passwords.from_file(tmp_path / "link")
    for content, words in ((b"", "is empty"), (b"\nx", "is empty"), (b"\xff\n", "not UTF-8")):
        path.write_bytes(content)
        with pytest.raises(BadInput, match=words):
            passwords.from_file(path)
    with pytest.raises(BadInput, match="no password file"):
        passwords.from_file(tmp_path / "none")


def test_a_real_keyring_keeps_it() -> None:
    keyring.set_keyring(Desktop())
    assert passwords.from_keyring(WHO) is None
    passwords.keep_in_keyring(WHO, "pass word")
    assert passwords.from_keyring(WHO.lower()) == "pass word"


def test_a_locked_one_says_so() -> None:
    backend = Desktop()
    keyring.set_keyring(backend)
    backend.locked = True
    for ask in (lambda: passwords.from_keyring(WHO), lambda: passwords.keep_in_keyring(WHO, "pass word")):
        with pytest.raises(Refused, match="the keyring says no: KeyringLocked"):
            ask()


def chain(*links: KeyringBackend) -> KeyringBackend:
    class Chained(ChainerBackend):
        backends = links  # type: ignore[assignment]

    Chained.__module__, Chained.__qualname__ = ChainerBackend.__module__, ChainerBackend.__qualname__
    return Chained()


@pytest.mark.parametrize("backend", [
    fail.Keyring(), null.Keyring(), PlaintextKeyring(), EncryptedKeyring(), chain(), chain(Desktop(), PlaintextKeyring()),
    chain(chain(null.Keyring()))], ids=lambda b: type(b).__module__)
def test_what_is_none_is_refused_by_its_class(backend: KeyringBackend) -> None:
    keyring.set_keyring(backend)
    with pytest.raises(Refused, match="is refused: it would keep the password in plain, or not at all"):
        passwords.keep_in_keyring(WHO, "pass word")
    assert passwords.from_keyring(WHO) is None


def test_a_chain_of_real_ones_is_real() -> None:
    desktop = Desktop()
    keyring.set_keyring(chain(desktop))
    passwords.keep_in_keyring(WHO, "pass word")
    assert list(desktop.kept.values()) == ["pass word"]
