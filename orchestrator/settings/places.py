"""Where this program keeps its state on this machine."""
from __future__ import annotations

import os
import sys
from pathlib import Path

from ..errors import BadInput


def state_dir() -> Path:
    """$SEALTUNE_HOME, else the platform's data folder. Made when missing; only its owner may enter (0700)."""
    folder = _wanted()
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        if folder.stat().st_mode & 0o077:
            folder.chmod(0o700)
    except OSError as problem:
        raise BadInput(f"state directory {folder}: {(problem.strerror or 'cannot be used').lower()}",
                       hint="set SEALTUNE_HOME to a folder of yours") from problem
    return folder


def _wanted() -> Path:
    if own := os.environ.get("SEALTUNE_HOME"):
        return Path(own).expanduser().absolute()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Application Support" / "sealtune"
    base = os.environ.get("XDG_DATA_HOME", "")
    return (Path(base) if Path(base).is_absolute() else Path.home() / ".local" / "share") / "sealtune"
