"""Starting the age child and reading how it ended. The only place that knows its arguments and exit codes."""
from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from ..errors import BadInput, SealtuneError, Transient
from . import age_child

SCRIPT = Path(age_child.__file__)


@contextlib.contextmanager
def age(arguments: Sequence[str], what: str, out: int, keep: Sequence[int] = ()) -> Iterator[IO[bytes]]:
    """The child, while the body feeds its standard input; `out` is the file descriptor it writes to.

    `what` names the file in an error. Raises Transient (does not open, damaged), BadInput (no such key), SealtuneError.
    A body that raises kills the child."""
    process = subprocess.Popen([sys.executable, "-I", str(SCRIPT), *arguments], stdin=subprocess.PIPE, stdout=out,
                               stderr=subprocess.DEVNULL, pass_fds=tuple(keep), env=_environment())
    assert process.stdin
    code, early = 0, False
    try:
        yield process.stdin
        process.stdin.close()
    except BrokenPipeError:                                  # the child ended first: its exit code says why
        early = True
    except BaseException:
        process.kill()
        raise
    finally:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
        code = process.wait()
    if code or early:
        raise _problem(code, what)


def _environment() -> dict[str, str]:
    """Nothing of ours but what an interpreter may need to find its own library."""
    return {name: os.environ[name] for name in ("LD_LIBRARY_PATH", "DYLD_LIBRARY_PATH") if name in os.environ}


def _problem(code: int, what: str) -> SealtuneError:
    if code == age_child.KEY:
        return Transient(f"{what} is not sealed to this run's key")
    if code == age_child.DAMAGED:
        return Transient(f"{what} is damaged or cut short")
    if code == age_child.NO_KEY:
        return BadInput(f"not an age key that can seal or open {what}")
    if code == age_child.NO_ROOM:
        return SealtuneError(f"{what} cannot be written", hint="make room on this disk")
    return SealtuneError(f"sealing {what} failed, exit code {code}")
