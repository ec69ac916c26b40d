"""The command line: one small file a command, which parses, wires, calls and renders. Nothing is decided here.

Progress and questions go to stderr, results to stdout; `--json` prints one object. Exit codes come from errors.py.
"""
from __future__ import annotations


def main() -> int:
    """Parse sys.argv, run one command, return its exit code."""
    from .app import main as run_app

    return run_app()
