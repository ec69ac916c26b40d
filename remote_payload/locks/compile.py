"""Makes the locks of the node's environments again: `python remote_payload/locks/compile.py [NAME ...]`.

A lock is a hashed requirements file, read by uv and pip alike, and holds no address: no index, no folder.
A folder of wheels (for torch's CPU build, which the registry does not carry) is named by PIP_FIND_LINKS.
It must not run on a node: environments there are made from the locks only.
"""
from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
LINUX = ("--python-platform", "x86_64-manylinux_2_28")
UNIVERSAL = ("--universal",)
LOCKS: dict[str, tuple[str, ...]] = {
    "cpu": LINUX,                        # one wheel of torch, for Python 3.11 on Linux x86-64
    "cpu-pypi": UNIVERSAL,
    "cu13": UNIVERSAL,
    "cu128": UNIVERSAL,
    "rehearsal": UNIVERSAL,
    "uv": UNIVERSAL,
}


def compile_lock(name: str, platform: tuple[str, ...]) -> None:
    """Resolves NAME.in to NAME.lock, hashes included. Raises CalledProcessError when uv finds no solution."""
    folders = [word for folder in os.environ.get("PIP_FIND_LINKS", "").split() for word in ("--find-links", folder)]
    subprocess.run(
        ["uv", "pip", "compile", f"{name}.in", "--output-file", f"{name}.lock", "--quiet", "--upgrade",
         "--python-version", "3.11", "--generate-hashes", "--no-header", "--no-annotate",
         *platform, *(folders if name == "cpu" else ())],
        cwd=HERE, check=True)
    text = (HERE / f"{name}.lock").read_text()
    if "://" in text:
        raise SystemExit(f"{name}.lock holds an address")


def main(names: list[str]) -> int:
    for name in names or LOCKS:
        compile_lock(name, LOCKS[name])
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
