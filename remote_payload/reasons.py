"""Why an installer did not succeed, from what it printed: a kind in words of ours, then its last lines made harmless.

Bounded, printable, without a path or a login in it; of an address only the host is left, since that is what the node's
owner has to mend. It must not decide anything: the words are for a person.
"""
from __future__ import annotations

import re
from pathlib import Path

from remote_payload.workspace import plain

TAIL, LINES, LINE, MOST = 16 * 1024, 4, 160, 520
KINDS = (                                # the first whose sign is there; signs in lower case
    ("the disk is full", ("no space left", "disk quota exceeded", "os error 28)", "os error 122)")),
    ("the package index's certificate is not trusted there", ("certificate", "unknownissuer", "ssl: ")),
    ("the package index or the proxy wants a login",
     ("401 ", "403 ", "407 ", "unauthorized", "forbidden", "authentication required")),
    ("no package index can be reached from there",
     ("dns error", "resolve host", "name resolution", "name or service not known", "connection refused", "proxyerror",
      "connection reset", "network is unreachable", "no route to host", "timed out", "tunnel error", "connect error",
      "error sending request", "newconnectionerror", "max retries exceeded", "failed to fetch")),
    ("a package is not what the lock says", ("hash mismatch", "do not match the hash", "hashes do not match")),
    ("there is no python of at least 3.11",
     ("no interpreter found", "requires-python", "no python installation", "requires a different python")),
    ("the package index does not have what the lock names",
     ("no solution found", "not found in the", "no matching distribution", "no version of", "could not find a version")),
)
ADDRESS = re.compile(r"[a-z][a-z0-9+.-]*://(?:[^/@\s]*@)?([A-Za-z0-9.-]+(?::[0-9]+)?)[^\s,)\"']*")
DRAWN = re.compile(r"[^ -~]+|^[\s|>-]+")


def reason(log: Path) -> str:
    """"the disk is full: … | …", at most MOST characters; "no reason given" for silence."""
    lines = [line for line in map(_harmless, _tail(log)) if line]
    if not lines:
        return "no reason given"
    kind, said = kind_of(" ".join(_tail(log)).lower()), " | ".join(lines[-LINES:])
    return plain(f"{kind}: {said}" if kind else said, MOST)


def kind_of(text: str) -> str:
    """What failed, in words of ours; "" where no sign is known."""
    return next((kind for kind, signs in KINDS if any(sign in text for sign in signs)), "")


def newest_name(log: Path) -> str:
    """The package that the installer named last, "" where it names none: what it is busy with."""
    found = re.findall(r"^\s*(?:Downloading|Downloaded|Collecting|Building|Built) ([A-Za-z0-9][A-Za-z0-9._-]{0,39})",
                       "\n".join(_tail(log)), re.MULTILINE)
    return re.split(r"-[0-9]", found[-1])[0].rstrip(".") if found else ""


def _tail(log: Path) -> list[str]:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL))
            return file.read(TAIL).decode("utf-8", "replace").splitlines()
    except OSError:
        return []


def _harmless(line: str) -> str:
    """Drawings and colours gone, addresses down to their host, every path hidden."""
    words = ADDRESS.sub(r"\1", re.sub(r"\x1b\[[0-9;]*m", "", line))
    words = DRAWN.sub(" ", words).strip()
    shown = " ".join("(a place)" if "/" in word or "\\" in word else word for word in words.split())
    return shown if len(shown) <= LINE else shown[:LINE - 3] + "..."
