"""The password of a wallet's keystore: from a file that is ours alone, or from the system's keyring.

The keyring is asked through the optional package `keyring`, and only where it is a real one: a back end that keeps
text in a plain file, or keeps nothing, is refused by its class. Nothing here asks a person, and nothing is cached.
"""
from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from ..errors import BadInput, Refused
from . import files

SERVICE = "sealtune"
# The classes that hand a secret to the operating system or the desktop, which asks its owner.
REAL = frozenset({
    "keyring.backends.macOS.Keyring", "keyring.backends.SecretService.Keyring", "keyring.backends.libsecret.Keyring",
    "keyring.backends.kwallet.DBusKeyring", "keyring.backends.Windows.WinVaultKeyring",
})
CHAIN = "keyring.backends.chainer.ChainerBackend"


def from_file(path: Path) -> str:
    """The first line. BadInput, or VaultTrouble where others may read it."""
    try:
        text = files.read(path).decode("utf-8")
    except FileNotFoundError:
        raise BadInput(f"no password file {path}") from None
    except UnicodeDecodeError:
        raise BadInput(f"the password file {path.name} is not UTF-8") from None
    password = text.split("\n", 1)[0].rstrip("\r")
    if not password:
        raise BadInput(f"the password file {path.name} is empty")
    return password


def from_keyring(account: str) -> str | None:
    """The password kept for this account; None where there is none, or no real keyring."""
    backend = _backend()
    if backend is None or _unreal(backend):
        return None
    with _in_our_words():
        found = backend.get_password(SERVICE, account.lower())
    return found if isinstance(found, str) and found else None


def keep_in_keyring(account: str, password: str) -> None:
    """Refused where there is no keyring, or none that one could trust with it."""
    backend = _backend()
    if backend is None:
        raise Refused("no keyring here: the package `keyring` is not installed",
                      hint='pip install "sealtune[keyring]", or use --password-file')
    if why := _unreal(backend):
        raise Refused(f"the keyring {why} is refused: it would keep the password in plain, or not at all",
                      hint="unlock your desktop's keyring, or use --password-file")
    with _in_our_words():
        backend.set_password(SERVICE, account.lower(), password)


def _backend() -> Any:
    """The back end that the package chose; None where it is not installed."""
    try:
        import keyring
    except ImportError:
        return None
    return keyring.get_keyring()


def _unreal(backend: Any) -> str:
    """The class that is none of the real ones; "" for a real one. Of a chain, every link must be real."""
    name = f"{type(backend).__module__}.{type(backend).__qualname__}"
    if name == CHAIN:
        links = list(backend.backends)
        return next((found for link in links if (found := _unreal(link))), "" if links else name)
    return "" if name in REAL else name


@contextmanager
def _in_our_words() -> Iterator[None]:
    import keyring.errors

    try:
        yield
    except keyring.errors.KeyringError as problem:
        raise Refused(f"the keyring says no: {type(problem).__name__}",
                      hint="unlock it, or use --password-file") from problem
