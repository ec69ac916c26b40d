"""The one command that is ever run on a node: it takes the payload from standard input and starts its agent.

Nothing touches the node's disk: the archive lies in a memory file and is imported from there. The digest in the
command is public. It must be one line that any login shell takes as it is (no single quote, no exclamation mark),
and run on Python 3.8 with the standard library.
Exit codes: 96 python too old, 97 not the bytes we sent, 98 no memory files here.
"""
from __future__ import annotations

import hashlib
import json

ARCHIVE_MAX = 16 * 1024 * 1024
FINAL = {96: "its python3 is older than 3.8", 98: "it has no memfd_create",
         126: "its python3 cannot be run", 127: "it has no python3"}


def _script() -> str:
    """Reads exactly its own bytes: what follows on standard input belongs to the agent."""
    return ("import sys\n"
            "if sys.version_info<(3,8):sys.exit(96)\n"
            "import os,hashlib\n"
            "def take(n):\n"
            " b=bytearray()\n"
            " while len(b)<n:\n"
            "  c=os.read(0,min(n-len(b),65536))\n"
            "  if not c:sys.exit(97)\n"
            "  b+=c\n"
            " return bytes(b)\n"
            "n=int.from_bytes(take(8),\"big\")\n"
            f"d=take(n) if n<={ARCHIVE_MAX} else b\"\"\n"
            "if not hashlib.sha256(d).hexdigest()==sys.argv[1]:sys.exit(97)\n"
            "if not hasattr(os,\"memfd_create\"):sys.exit(98)\n"
            "m=os.memfd_create(\"payload\")\n"
            "while d:d=d[os.write(m,d):]\n"
            "sys.path.insert(0,\"/proc/self/fd/%d\"%m)\n"
            "from remote_payload.agent import main\n"
            "sys.exit(main())\n")


def command(archive: bytes) -> str:
    """The command line for the exec channel."""
    return f"exec python3 -I -c 'exec({json.dumps(_script())})' {hashlib.sha256(archive).hexdigest()}"


def preamble(archive: bytes) -> bytes:
    """What the loader reads first: length (u64, big endian) and archive."""
    return len(archive).to_bytes(8, "big") + archive
