"""The vault of one run: named secrets, each a file in the run's folder `keys` (port Vault)."""
from __future__ import annotations

import re
from contextlib import suppress
from pathlib import Path

from . import files
from .files import VaultTrouble
from .kinds import KINDS

NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,40}(/[a-z0-9][a-z0-9-]{0,40})?")


class FileVault:
    """Durable on return. Two processes may ask for the same name: one makes it, both get the same half."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def create(self, name: str, kind: str) -> str:
        """ValueError for an unknown kind; VaultTrouble when the name holds a secret of another kind."""
        if kind not in KINDS:
            raise ValueError(f"no such kind of secret: {kind!r}")
        path = self._path(name)
        files.own_folder(self._folder)
        if not path.exists():
            with suppress(FileExistsError):  # another process was faster: its secret is the one
                files.write_new(path, KINDS[kind].make())
        try:
            return KINDS[kind].public(files.read(path))
        except ValueError as problem:
            raise VaultTrouble(f"{name} holds no secret of kind {kind}") from problem

    def read(self, name: str) -> bytes:
        """VaultTrouble when there is none: it was destroyed, or it is on another laptop."""
        try:
            return files.read(self._path(name))
        except FileNotFoundError:
            raise VaultTrouble(f"no key {name} on this laptop", hint="what it opened cannot be opened here") from None

    def destroy(self, name: str) -> None:
        files.destroy(self._path(name))

    def _path(self, name: str) -> Path:
        if not NAME.fullmatch(name):
            raise ValueError(f"not a name for a key: {name!r}")
        return self._folder / name.replace("/", ".")
