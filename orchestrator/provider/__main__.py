"""`python -m orchestrator.provider CONFIG.json`."""
from __future__ import annotations

import sys

from ..errors import SealtuneError
from .serve import main

if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit("usage: python -m orchestrator.provider CONFIG.json")
    try:
        sys.exit(main(sys.argv[1:]))
    except SealtuneError as problem:
        sys.exit(f"error: {problem}\nhint: {problem.hint}" if problem.hint else f"error: {problem}")
