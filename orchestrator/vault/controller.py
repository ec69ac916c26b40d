"""`controller.key`: the laptop's Ed25519 key that signs reports. Made at first use, worth a backup, never sent."""
from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from . import files
from .kinds import KINDS

FILE = "controller.key"


def controller_key(state: Path) -> Path:
    """The file, an unencrypted OpenSSH key, 0600. Made when there is none; VaultTrouble when it is not safely ours."""
    path = state / FILE
    try:
        files.read(path)
    except FileNotFoundError:
        state.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):      # another command was faster
            files.write_new(path, KINDS["ssh"].make())
    return path


def controller_public(state: Path) -> str:
    """Its public line, "ssh-ed25519 AAAA…", which an auditor elsewhere puts behind a name into allowed_signers."""
    return KINDS["ssh"].public(files.read(controller_key(state)))
