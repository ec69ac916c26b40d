"""Circle's token once more, from its sources, to compare with the bytes that are vendored for the lab and the tests.

Sources, library and compiler come from npm's tarballs, which tools.py fetched and checked; nothing of them is unpacked
or committed. Names and settings are those of Circle's own build, so even the metadata's digest at the end must agree.
"""
from __future__ import annotations

import posixpath
import re
import tarfile
from pathlib import Path
from typing import Any

from orchestrator.chain.contracts import build

from . import tools

CONTRACTS = ("contracts/v2/FiatTokenV2_2.sol", "contracts/v1/FiatTokenProxy.sol", "contracts/util/SignatureChecker.sol")
_SOURCES, _LIBRARY, _COMPILER = (tools.tarball(package) for package in tools.CIRCLE)
_IMPORT = re.compile(r'import\s+(?:\{[^}]*\}\s+from\s+)?"([^"]+)"')
_SETTINGS = {
    "optimizer": {"enabled": True, "runs": 10_000_000},
    "outputSelection": {"*": {"*": ["abi", "evm.bytecode.object", "evm.bytecode.linkReferences"]}},
}


def rebuilt(folder: Path) -> dict[str, Any]:
    """By contract: abi, bytecode (hex, unlinked) and linkReferences, as the vendored files have them."""
    soljson = folder / "soljson.js"
    soljson.write_bytes(_read(_COMPILER, "soljson.js"))
    said = build.compile_sources(soljson, _sources(), warn=False, settings=_SETTINGS)["contracts"]
    found = {Path(path).stem: said[path][Path(path).stem] for path in CONTRACTS}
    return {name: {"abi": made["abi"], "bytecode": "0x" + made["evm"]["bytecode"]["object"],
                   "linkReferences": made["evm"]["bytecode"]["linkReferences"]} for name, made in found.items()}


def _sources() -> dict[str, str]:
    """The contracts and all that they import, by the names that the compiler looks for."""
    found: dict[str, str] = {}
    wanted = list(CONTRACTS)
    while wanted:
        name = wanted.pop()
        if name in found:
            continue
        inside = name.removeprefix("@openzeppelin/contracts/")
        found[name] = _read(_SOURCES if inside == name else _LIBRARY, inside).decode()
        for path in _IMPORT.findall(found[name]):
            near = posixpath.normpath(posixpath.join(posixpath.dirname(name), path))
            wanted.append(near if path.startswith(".") else path)
    return found


def _read(tarball: Path, name: str) -> bytes:
    with tarfile.open(tarball) as archive:
        member = archive.extractfile(f"package/{name}")
        assert member is not None, name
        return member.read()
