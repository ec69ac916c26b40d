"""Words of strangers, made harmless before anybody sees or stores them. Nodes, markets, chains, files of others.

No control, no escape, no change of direction, no letter that only looks like another: printable ASCII is left, all else
becomes "?". It must be the only way by which such text reaches a screen, a log, an exception or the journal.
"""
from __future__ import annotations

LINE_MAX, BLOCK_MAX = 200, 64 * 1024


def clean(text: object, limit: int = LINE_MAX) -> str:
    """One line of at most `limit` characters, blanks run together."""
    return " ".join("".join(map(_shown, str(text)[:limit * 4])).split())[:limit]


def plain(text: object) -> str:
    """One line as its writer meant it, letters of any language included; nothing in it moves a terminal."""
    return "".join(c if c.isprintable() else "?" for c in str(text))


def clean_block(data: bytes, limit: int = BLOCK_MAX) -> str:
    """Several lines, for evidence that is kept, cut at `limit` bytes. Here letters of any language stay."""
    text = data[:limit].decode("utf-8", "replace").replace("\r\n", "\n")
    return "".join(c if c.isprintable() or c in "\n\t" else "?" for c in text)


def _shown(c: str) -> str:
    return c if " " <= c <= "~" else " " if c in "\n\t" else "?"
