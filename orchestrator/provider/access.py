"""The node's door: one authorized_keys file that belongs to the provider, with the present renter's key or none.

It knows keys, not rentals. It ends no session: that is the lock-out's part, which the machine's owner gives in.
"""
from __future__ import annotations

from pathlib import Path

from ..marketplace.open_market.wire import SSH_KEY_LINE
from .store import write_whole

OPTIONS = "restrict"                     # no forwarding, no terminal, no agent, no rc file


class Door:
    """`mode`: the ssh server reads the file as the renter's account, so others may read it. Keys are public."""

    def __init__(self, path: Path, mode: int = 0o644) -> None:
        self._path, self._mode = path, mode

    def admit(self, ssh_public_key: str) -> None:
        """Let in the holder of this key alone, "ssh-ed25519 AAAA…". Again is no change. ValueError for no such line."""
        if not SSH_KEY_LINE.fullmatch(ssh_public_key):
            raise ValueError("not an ed25519 public key line")
        self._hold(f"{OPTIONS} {ssh_public_key}\n")

    def shut(self) -> None:
        self._hold("")

    def admitted(self) -> str | None:
        """The key that is let in now."""
        text = self._text()
        return text.removeprefix(f"{OPTIONS} ").strip() or None

    def _text(self) -> str:
        try:
            return self._path.read_text(encoding="ascii", errors="replace")
        except FileNotFoundError:
            return ""

    def _hold(self, text: str) -> None:
        if not self._path.exists() or self._text() != text:
            write_whole(self._path, text.encode("ascii"), self._mode)
