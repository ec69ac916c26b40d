"""Foundry's forge and the compiler, as the tests use them: projects laid out in a folder of the caller's.

A suite is compiled against the interface only and deploys the committed bytes, the escrow's as well as Circle's, so
what it tests is what is shipped. The compiler is npm's, behind a script that speaks enough of solc's command line.
"""
from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from orchestrator.chain import contracts
from orchestrator.chain.contracts import build

from . import tools

HERE = Path(__file__).resolve().parent / "forge"
SOURCES = Path(contracts.__file__).parent


def suite(folder: Path, escrow: bytes | None = None) -> Path:
    """A project of the tests in forge/, for the committed escrow or for `escrow` (creation code)."""
    (folder / "src").mkdir(parents=True)
    (folder / "test").mkdir()
    shutil.copy(SOURCES / "IRentalEscrow.sol", folder / "src")
    shutil.copy(HERE / "foundry.toml", folder)
    for source in HERE.glob("*.sol"):
        shutil.copy(source, folder / "test")
    write_code(folder / "code", escrow or contracts.load("RentalEscrow").bytecode)
    return folder


def write_code(folder: Path, escrow: bytes) -> None:
    """What World.sol deploys."""
    folder.mkdir(exist_ok=True)
    made = contracts.usdc()
    code = {"escrow": escrow, "checker": made.checker.bytecode, "proxy": made.proxy.bytecode,
            "token": made.implementation("0x" + "00" * 20)}
    for name, content in code.items():
        (folder / f"{name}.hex").write_text("0x" + content.hex(), encoding="ascii")
    (folder / "links.json").write_text(json.dumps({"links": list(made.links)}), encoding="ascii")


def run(project: Path, *arguments: str, limit_s: int = 300) -> subprocess.CompletedProcess[str]:
    command = [str(tools.FORGE), *arguments, "--root", str(project)]
    return subprocess.run(command, cwd=project, env=environment(), capture_output=True, text=True, timeout=limit_s,
                          check=False)


def environment() -> dict[str, str]:
    """For forge, and for what calls it."""
    return {**os.environ, "FOUNDRY_SOLC": str(tools.SOLC), "FOUNDRY_OFFLINE": "true", "FOUNDRY_DISABLE_NIGHTLY_WARNING": "1",
            "PATH": f"{tools.FORGE.parent}{os.pathsep}{os.environ['PATH']}", "HOME": str(tools.HOME)}


def compiled(folder: Path) -> Any:
    """What the compiler says of the sources with the artefact's own settings. `folder` becomes a project with that
    output, as forge would have left it, for slither."""
    sources, informed = build.read_sources(), folder / "out" / "build-info"
    informed.mkdir(parents=True)
    output = build.compile_sources(tools.SOLJSON, sources, folder)
    for name, text in sources.items():
        (folder / name).write_text(text, encoding="utf-8")
    request = json.loads((folder / "input.json").read_text(encoding="utf-8"))
    said = {"solcVersion": build.SOLC, "input": request, "output": output}
    (informed / "escrow.json").write_text(json.dumps(said), encoding="utf-8")
    (folder / "foundry.toml").write_text('[profile.default]\nsrc = "."\nlibs = []\n', encoding="utf-8")
    return output


def proof(folder: Path, escrow: bytes | None = None) -> Path:
    """A project for halmos: the properties, and the committed bytes or `escrow` as a constant: a prover reads no files."""
    (folder / "src").mkdir(parents=True)
    (folder / "test").mkdir()
    shutil.copy(SOURCES / "IRentalEscrow.sol", folder / "src")
    code = (escrow or contracts.load("RentalEscrow").bytecode).hex()
    (folder / "src" / "Code.sol").write_text(f'pragma solidity {build.SOLC};\nbytes constant ESCROW = hex"{code}";\n',
                                             encoding="ascii")
    shutil.copy(HERE / "proof" / "Proof.t.sol", folder / "test")
    (folder / "foundry.toml").write_text(_PROOF, encoding="utf-8")
    return folder


_PROOF = """[profile.default]
libs = []
evm_version = "cancun"
optimizer = false
ast = true
extra_output = ["storageLayout", "metadata"]

[lint]
lint_on_build = false
"""
