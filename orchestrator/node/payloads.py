"""The payload archive and the locks: which code and which environment go to a node. Read as files, never imported.

The archive is the same bytes on every laptop with the same release: sorted names, fixed dates, stored. It must not
hold the locks (they travel with `install`) nor anything that is not part of the package.
"""
from __future__ import annotations

import importlib.util
import io
import re
import zipfile
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path

from ..domain.document import sha256
from ..domain.evidence import HardwareReport
from ..domain.names import Digest, Reason
from ..domain.spool import Payload
from ..errors import LeaveNode, Refused

PACKAGE = "remote_payload"
DATE = (1980, 1, 1, 0, 0, 0)
VARIANTS = ("cpu", "cpu-pypi", "cu128", "cu13", "rehearsal")
INSTALLER = "uv"
CUDA13_DRIVER, CUDA12_DRIVER = 580, 525
CUDA13_COMPUTE = (7, 5)


class Payloads:
    """Port Payloads, over the installed package (or `folder`, its directory)."""

    def __init__(self, folder: Path | None = None) -> None:
        self._folder = folder or _installed()

    @cached_property
    def archive(self) -> bytes:
        return build(self._folder)

    @cached_property
    def digest(self) -> Digest:
        return sha256(self.archive)

    @cached_property
    def locks(self) -> Mapping[str, bytes]:
        """Lock files by variant, and "uv"."""
        return {name: (self._folder / "locks" / f"{name}.lock").read_bytes() for name in (*VARIANTS, INSTALLER)}

    def fitting(self, hardware: HardwareReport, engine: str) -> Payload:
        """See ports.Payloads."""
        variant = self._variant(hardware, engine)
        return Payload(self.digest, sha256(self.locks[variant]), variant)

    def _variant(self, hardware: HardwareReport, engine: str) -> str:
        if engine == "rehearsal":
            return "rehearsal"
        if not hardware.driver or hardware.simulated:
            return "cpu" if self._wheel_is_there(hardware) else "cpu-pypi"
        major = int(re.match(r"\d+|", hardware.driver).group() or 0)  # type: ignore[union-attr]  # it always matches
        if major < CUDA12_DRIVER:
            raise LeaveNode(Reason.UNSUITABLE, detail=f"NVIDIA driver {hardware.driver}, need {CUDA12_DRIVER} or newer")
        return "cu13" if major >= CUDA13_DRIVER and _compute(hardware.compute) >= CUDA13_COMPUTE else "cu128"

    def _wheel_is_there(self, hardware: HardwareReport) -> bool:
        """The very build of torch that the cpu lock names, for the node's own python."""
        pinned = re.search(rb"^torch==(\S+)", self.locks["cpu"], re.MULTILINE)
        if not pinned:
            return False
        tag = "cp" + hardware.python.replace(".", "")
        start = f"torch-{pinned.group(1).decode()}-{tag}-"
        return any(w.startswith(start) and w.endswith("x86_64.whl") for w in hardware.wheels)


def build(folder: Path) -> bytes:
    """The zip archive of a package folder; its __main__.py also at the root, where Python looks for it."""
    members = {f"{PACKAGE}/{p.relative_to(folder).as_posix()}": p.read_bytes() for p in folder.rglob("*.py")
               if "__pycache__" not in p.parts and p.relative_to(folder).parts[0] != "locks"}
    if f"{PACKAGE}/__main__.py" in members:
        members["__main__.py"] = members[f"{PACKAGE}/__main__.py"]
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_STORED) as archive:
        for name in sorted(members):
            info = zipfile.ZipInfo(name, DATE)
            info.create_system, info.external_attr = 3, 0o100600 << 16
            archive.writestr(info, members[name])
    return out.getvalue()


def _installed() -> Path:
    """The package's folder, found without importing it."""
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise Refused(f"the package {PACKAGE} is not installed", hint="reinstall sealtune")
    return Path(next(iter(spec.submodule_search_locations)))


def _compute(text: str) -> tuple[int, ...]:
    """(8, 9) of "8.9"; an unknown card counts as new enough."""
    return tuple(int(n) for n in text.split(".")) if re.fullmatch(r"\d+\.\d+", text) else CUDA13_COMPUTE
