"""Compile the escrow and write its artefact, or compare it with the committed one.

    python -m orchestrator.chain.contracts.build           write RentalEscrow.json
    python -m orchestrator.chain.contracts.build --check   exit 1 if it would change

Users never run this: the artefact ships with the package. The compiler is npm's `solc` at one version whose
tarball must have one digest; only its single file is used, so nothing else is installed. Standard library only.
"""
from __future__ import annotations

import base64
import hashlib
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

SOLC = "0.8.35"
SOLC_SHA512 = "OaP/4zyoKRo2CjqZDxbtkeRlEo6MxP4FLCxntw1Agf9OSoecmwYKoFBSB34UcSKBFBucrTh3Mb0nRoJou62ibw=="
HERE = Path(__file__).resolve().parent
SOURCES = ("Budgets.sol", "IRentalEscrow.sol", "Purse.sol", "Records.sol", "RentalEscrow.sol", "Signatures.sol")
ARTEFACT = HERE / "RentalEscrow.json"
# cancun is as much as the contract needs; cancun, prague and osaka give the same bytes.
SETTINGS: dict[str, Any] = {
    "evmVersion": "cancun",
    "optimizer": {"enabled": True, "runs": 10_000},
    "viaIR": True,
    "metadata": {"bytecodeHash": "ipfs", "appendCBOR": True},
    # The second line is for slither, which reads the same output.
    "outputSelection": {
        "*": {"*": ["abi", "evm.bytecode.object", "evm.deployedBytecode.object", "evm.deployedBytecode.immutableReferences",
                    "evm.bytecode.sourceMap", "evm.deployedBytecode.sourceMap", "userdoc", "devdoc"],
              "": ["ast"]},
    },
}
# The output is read from a file: node cuts what it writes to a pipe when it exits.
RUN_SOLC = """
const fs = require('fs');
const solc = require(process.argv[1]);
const compile = solc.cwrap('solidity_compile', 'string', ['string', 'number', 'number']);
fs.writeFileSync(process.argv[3], compile(fs.readFileSync(process.argv[2], 'utf8'), 0, 0));
"""


def fetch_solc(folder: Path) -> Path:
    """The compiler's one file, unpacked into `folder` after its tarball's digest was checked. A tarball that lies there
    already is used."""
    tarball = folder / f"solc-{SOLC}.tgz"
    if not tarball.is_file():
        command = ["npm", "pack", f"solc@{SOLC}", "--silent", "--ignore-scripts", "--pack-destination", str(folder)]
        subprocess.run(command, check=True, capture_output=True, cwd=folder, timeout=300)
    digest = base64.b64encode(hashlib.sha512(tarball.read_bytes()).digest()).decode()
    if digest != SOLC_SHA512:
        raise SystemExit(f"solc {SOLC} has digest {digest}, expected {SOLC_SHA512}")
    with tarfile.open(tarball) as archive:
        member = archive.extractfile("package/soljson.js")
        if member is None:
            raise SystemExit(f"no soljson.js in {tarball.name}")
        path = folder / "soljson.js"
        path.write_bytes(member.read())
    return path


def compile_sources(soljson: Path, sources: dict[str, str], folder: Path | None = None, warn: bool = True,
                    settings: dict[str, Any] = SETTINGS) -> Any:
    """Standard JSON in, standard JSON out, both in `folder` or beside the compiler. With `warn` a warning is an error."""
    request = {"language": "Solidity", "sources": {n: {"content": t} for n, t in sources.items()}, "settings": settings}
    folder = folder or soljson.parent
    (folder / "input.json").write_text(json.dumps(request), encoding="utf-8")
    command = ["node", "-e", RUN_SOLC, str(soljson), str(folder / "input.json"), str(folder / "output.json")]
    subprocess.run(command, check=True, timeout=300)
    output = json.loads((folder / "output.json").read_text(encoding="utf-8"))
    problems = [e["formattedMessage"] for e in output.get("errors", []) if warn or e["severity"] == "error"]
    if problems:
        raise SystemExit("\n".join(problems))
    return output


def artefact(output: Any, sources: dict[str, str]) -> dict[str, Any]:
    contract = output["contracts"]["RentalEscrow.sol"]["RentalEscrow"]
    evm = contract["evm"]
    references = evm["deployedBytecode"]["immutableReferences"]
    return {
        "contractName": "RentalEscrow",
        "compiler": {"version": SOLC, "settings": {k: v for k, v in SETTINGS.items() if k != "outputSelection"}},
        "sources": {name: hashlib.sha256(text.encode()).hexdigest() for name, text in sources.items()},
        "abi": contract["abi"],
        "bytecode": "0x" + evm["bytecode"]["object"],
        "deployedBytecode": "0x" + evm["deployedBytecode"]["object"],
        # Without the compiler's node numbers, which say nothing: where the one token address goes.
        "immutableReferences": [place for places in references.values() for place in places],
    }


def build(soljson: Path) -> bytes:
    """The artefact's bytes, from the sources beside this file. Needs node."""
    return written(compile_sources(soljson, read_sources()), read_sources())


def read_sources() -> dict[str, str]:
    return {name: (HERE / name).read_text(encoding="utf-8") for name in SOURCES}


def written(output: Any, sources: dict[str, str]) -> bytes:
    """The artefact's bytes, from what the compiler said."""
    return (json.dumps(artefact(output, sources), indent=1) + "\n").encode()


def main(arguments: list[str]) -> int:
    if arguments not in ([], ["--check"]):
        raise SystemExit("usage: build.py [--check]")
    with tempfile.TemporaryDirectory(prefix="solc-") as folder:
        built = build(fetch_solc(Path(folder)))
    if not arguments:
        ARTEFACT.write_bytes(built)
        return 0
    if built != ARTEFACT.read_bytes():
        sys.stderr.write(f"{ARTEFACT.name} is not what the sources give\n")
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
