"""The door: `python3 -m orchestrator …` from a clone, `sealtune …` where it is installed.

From a clone it first makes `.venv` from the hash-pinned lock and goes on inside it, so that nothing but Python is
needed. Standard library only, and as little of it as can be: `--version` is answered before anything is imported.
"""
from __future__ import annotations

import sys

from orchestrator import __version__


def main() -> int:
    """Exit code of the command line."""
    try:
        code = start()
    except KeyboardInterrupt:            # before the command line was there to hear it
        print("sealtune: interrupted before anything was begun", file=sys.stderr)
        return 130
    if signal := sys.modules.get("signal"):      # all is said: an impatient Ctrl-C must not change the exit code
        signal.signal(signal.SIGINT, signal.SIG_IGN)
    return code


def start() -> int:
    if sys.argv[1:] == ["--version"]:
        print(f"sealtune {__version__}")
        return 0
    from orchestrator import bootstrap

    if bootstrap.needed():
        return bootstrap.enter()
    from orchestrator.cli import main as command_line

    return command_line()


if __name__ == "__main__":
    sys.exit(main())
