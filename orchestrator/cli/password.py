"""The password of a keystore: from a file, from the system's keyring, else asked on the terminal, unseen."""
from __future__ import annotations

import sys
from pathlib import Path

from ..errors import BadInput, Refused
from ..vault import passwords

SHORTEST = 8


def unlock(keystore: Path, file: Path | None = None) -> str:
    """For a keystore that exists."""
    from ..chain.wallet import address_of

    if file:
        return passwords.from_file(file)
    return passwords.from_keyring(address_of(keystore)) or hidden(f"password of {keystore.name}: ")


def choose(file: Path | None) -> str:
    """For a new keystore: asked twice, or read from a file."""
    password = passwords.from_file(file) if file else hidden(f"a new password, at least {SHORTEST} characters: ")
    if len(password) < SHORTEST:
        raise BadInput(f"a password of {len(password)} characters is too short: at least {SHORTEST}")
    if not file and hidden("the same again: ") != password:
        raise BadInput("the two passwords differ")
    return password


def hidden(question: str) -> str:
    """One line from the terminal that is not shown. Refused where there is none."""
    import getpass

    if not sys.stdin.isatty():
        raise Refused("there is no terminal to ask for a password on", hint="--password-file FILE, with chmod 600")
    return getpass.getpass(question, stream=sys.stderr)
