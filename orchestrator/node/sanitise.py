"""Words of the node, made harmless before anybody sees or stores them: no control, no escape, no direction change.

It must be the only way by which text of the node reaches a log, a screen, an exception or the journal.
"""
from __future__ import annotations

import re

# C0 without tab and newline, DEL, C1, soft hyphen, zero width, bidi, separators, BOM, specials, tags, surrogates
_UNSAFE = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff0-\uffff"
    "\ud800-\udfff\U000e0000-\U000e007f]")


def clean(text: object, limit: int = 200) -> str:
    """One printable line of at most `limit` characters; what was unsafe becomes "?"."""
    return " ".join(_UNSAFE.sub("?", str(text)[:limit * 4]).split())[:limit]


def clean_block(data: bytes, limit: int = 64 * 1024) -> str:
    """Several lines, for evidence that is kept: UTF-8 or "?", unsafe characters replaced, cut at `limit` bytes."""
    return _UNSAFE.sub("?", data[:limit].decode("utf-8", "replace").replace("\r\n", "\n"))
