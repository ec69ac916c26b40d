"""Where anvil comes from: what this computer has, else one file of Foundry's npm package, checked by its digest.

Nothing is fetched when it is there already, and nothing is run that does not have the pinned digest, except what
the user installed. No address is named here: npm knows its own registry.
"""
from __future__ import annotations

import base64
import hashlib
import os
import platform
import shutil
import subprocess
import tarfile
import tempfile
from pathlib import Path

VERSION = "1.7.1"
_SHA512 = {
    "linux-amd64": "+XmShybEaxfCrr0OUUZwYEy2OnYZt5pHH9TzBtLv3+VrK0O/ANuNSVEahqNhKHlgX7GRJ59383ofNhxkRWIYTg==",
    "linux-arm64": "ykHJmFOGdBR8+9smOKBm9ZZDCCCkLQctiHOAddLvmYx9mPeBDMfq6jP51hKYsO5MG8ClPLSlWe+JpiXPjoXgBQ==",
    "darwin-arm64": "JNeu3+A3f/npXLn8SR8EahVcqE7BpO9VQZMcPvSIy27/RNc1GsoEBvSLR99aSvt8sGKWAgNg/EzrtjAPq6mxcA==",
    "darwin-amd64": "OgwzwY+FsGrsPyDv4mmbhOwARO8s37YHrm2qaNzgSH4VlKnXgJCrnoT7bpgOhLyBPtxXjBT8L2E3b79deesXRg==",
}
HASTE = {"npm_config_fetch_retries": "1", "npm_config_fetch_timeout": "60000"}    # a laptop without a network has py-evm
_LARGEST = 128 * 1024 * 1024


def find(tools: Path) -> Path | None:
    """An anvil that runs here: $SEALTUNE_ANVIL ("none" for none at all), PATH, Foundry's own folder, `tools`, npm."""
    named = os.environ.get("SEALTUNE_ANVIL")
    if named == "none":
        return None
    kept = tools / f"anvil-{VERSION}"
    candidates = [named, shutil.which("anvil"), Path.home() / ".foundry" / "bin" / "anvil", kept]
    for candidate in candidates:
        if candidate and _runs(Path(candidate)):
            return Path(candidate)
    return kept if _fetch(kept) and _runs(kept) else None


def _runs(program: Path) -> bool:
    """Whether it starts at all: the file may be for another system, or need a newer C library."""
    try:
        return subprocess.run([str(program), "--version"], capture_output=True, timeout=10, check=False).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


def _platform() -> str:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    return f"{platform.system().lower()}-{machine}"


def _fetch(target: Path) -> bool:
    """Put the npm package's one program at `target`. False where there is no npm, no package, or another digest."""
    wanted, npm = _SHA512.get(_platform()), shutil.which("npm")
    if wanted is None or npm is None:
        return False
    package = f"@foundry-rs/anvil-{_platform()}@{VERSION}"
    with tempfile.TemporaryDirectory(prefix="anvil-") as folder:
        command = [npm, "pack", package, "--silent", "--ignore-scripts", "--pack-destination", folder]
        try:
            subprocess.run(command, capture_output=True, timeout=300, check=True, cwd=folder, env={**os.environ, **HASTE})
        except (OSError, subprocess.SubprocessError):
            return False
        (tarball,) = Path(folder).glob("*.tgz")
        if base64.b64encode(hashlib.sha512(tarball.read_bytes()).digest()).decode() != wanted:
            return False
        return _unpack(tarball, target)


def _unpack(tarball: Path, target: Path) -> bool:
    with tarfile.open(tarball) as archive:
        member = archive.extractfile("package/bin/anvil")
        if member is None:
            return False
        program = member.read(_LARGEST)
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    draft.write_bytes(program)
    draft.chmod(0o700)
    draft.replace(target)
    return True
