"""How an SSH public key is shown to people: "SHA256:…", as ssh-keygen -l prints it. One spelling for all rooms.

It must not judge a key: whether it is the right one is the business of whoever asks.
"""
from __future__ import annotations

import base64
import hashlib


def fingerprint(line: str) -> str:
    """Of "ssh-ed25519 AAAA… [comment]"; "" where that is no key line."""
    try:
        return fingerprint_of(base64.b64decode(line.split()[1], validate=True))
    except (ValueError, IndexError):
        return ""


def fingerprint_of(blob: bytes) -> str:
    """Of a key in SSH's own bytes."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")
