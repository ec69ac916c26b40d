"""The second key of a wallet in a browser: it rents with money that the owner set aside, and can send it only home.

One file for a chain and an owner, not for a run: its address is known before one, and a lost run folder loses no gas.
"""
from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from . import files
from .kinds import KINDS

FOLDER = "sessions"


def session_key(state: Path, chain_id: int, owner: str) -> Path:
    """The file, 64 hex digits, 0600. Made when there is none; VaultTrouble when it is not safely ours."""
    path = state / FOLDER / f"{chain_id}.{owner.lower()}"
    try:
        files.read(path)
    except FileNotFoundError:
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with suppress(FileExistsError):      # another command was faster
            files.write_new(path, KINDS["secp256k1"].make())
    return path
