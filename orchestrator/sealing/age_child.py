"""The child process that runs age. Standard library and pyrage only; never imported by the rest of the house.

    age_child.py seal RECIPIENT          plaintext on stdin → sealed on stdout
    age_child.py open FD                 identity on stdin, sealed file at FD → plaintext on stdout
    age_child.py reseal FD RECIPIENT     identity on stdin, sealed file at FD → sealed again on stdout

Decrypted bytes stay in memory until age has vouched for all of them. Exit codes: 0 done, 3 the identity does not
open it, 4 damaged, 5 no such key, 6 no room where the output goes. It says nothing else: an error's text may hold data.
"""
from __future__ import annotations

import contextlib
import io
import os
import resource
import sys
from collections.abc import Callable
from typing import BinaryIO

KEY, DAMAGED, NO_KEY, NO_ROOM = 3, 4, 5, 6
IDENTITY_BYTES = 4096


def main(arguments: list[str]) -> int:
    harden()
    import pyrage
    try:
        return WORK[arguments[0]](*arguments[1:])
    except (pyrage.RecipientError, pyrage.IdentityError):
        return NO_KEY
    except pyrage.DecryptError:
        return KEY


def harden() -> None:
    """No core dump: it would hold key and plaintext."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def seal(recipient: str) -> int:
    return _encrypt(sys.stdin.buffer, recipient)


def open_(fd: str) -> int:
    plain = _decrypt(int(fd))
    if plain is None:
        return DAMAGED
    sys.stdout.buffer.write(plain.getbuffer())
    sys.stdout.buffer.flush()
    return 0


def reseal(fd: str, recipient: str) -> int:
    plain = _decrypt(int(fd))
    return DAMAGED if plain is None else _encrypt(plain, recipient)


def _encrypt(source: BinaryIO, recipient: str) -> int:
    import pyrage
    key = pyrage.x25519.Recipient.from_str(recipient)
    try:
        pyrage.encrypt_io(source, sys.stdout.buffer, [key])
        sys.stdout.buffer.flush()
    except OSError:
        return NO_ROOM
    return 0


def _decrypt(fd: int) -> io.BytesIO | None:
    """The whole plaintext, or None: age notices damage only after it has handed out what came before."""
    import pyrage
    identity = pyrage.x25519.Identity.from_str(sys.stdin.buffer.read(IDENTITY_BYTES).decode("ascii", "replace").strip())
    plain = io.BytesIO()
    try:
        with os.fdopen(fd, "rb") as sealed:
            pyrage.decrypt_io(sealed, plain, [identity])
    except OSError:
        return None
    plain.seek(0)
    return plain


WORK: dict[str, Callable[..., int]] = {"seal": seal, "open": open_, "reseal": reseal}

if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
