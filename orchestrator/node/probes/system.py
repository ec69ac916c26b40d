"""The other views of a node: kernel files, PCI bus, memory, disk, python. Bytes in, values out, nothing else."""
from __future__ import annotations

import re
from dataclasses import dataclass

from ...domain.document import parse as parse_json
from ...domain.text import clean

NAMES = ("nvidia-smi-xml", "proc-gpus", "proc-driver", "pci", "meminfo", "cpuinfo-count", "disk", "mounts", "swaps",
         "preload", "core-pattern", "os-release", "uname", "python", "wheels", "boot-id", "whoami")
TAMPERING = re.compile(r"nvidia|nvml|cuda|vgpu|hami", re.IGNORECASE)
WHEEL = re.compile(r"torch-[A-Za-z0-9_.+!-]{1,150}\.whl")


@dataclass(frozen=True, slots=True)
class Python:
    version: str = ""
    venv: bool = False
    pip: bool = False
    uv: str = ""


def uuids(proc_gpus: bytes) -> frozenset[str]:
    """GPU UUIDs as the driver's own files show them."""
    return frozenset(re.findall(r"GPU UUID:\s*(GPU-[0-9a-f-]{36})", _text(proc_gpus)))


def driver_version(proc_driver: bytes) -> str:
    found = re.search(r"NVRM version:.*?\s(\d{3}\.\d{1,3}(?:\.\d{1,3})?)\s", _text(proc_driver))
    return found.group(1) if found else ""


def nvidia_devices(pci: bytes) -> tuple[str, ...]:
    """PCI device ids of NVIDIA's display controllers, from lines of vendor, device and class."""
    found = re.findall(r"0x10de\W+0x([0-9a-f]{4})\W+0x03", _text(pci).lower())
    return tuple(found)


def memory_mib(meminfo: bytes) -> int:
    found = re.search(r"^MemTotal:\s*(\d{1,15}) kB", _text(meminfo), re.MULTILINE)
    return int(found.group(1)) // 1024 if found else 0


def disk_bytes(disk: bytes) -> tuple[int, int]:
    """(total, free)."""
    numbers = [int(n) for n in re.findall(r"\b\d{1,18}\b", _text(disk))[:2]]
    return (numbers[0], numbers[1]) if len(numbers) == 2 else (0, 0)


def tampering(preload: bytes) -> str:
    """The preloaded library that can lie about a GPU, "" where there is none."""
    return next((clean(line, 80) for line in _text(preload).splitlines() if TAMPERING.search(line)), "")


def python(output: bytes) -> Python:
    try:
        tree = parse_json(output.strip() or b"{}")
    except ValueError:
        return Python()
    said = tree if isinstance(tree, dict) else {}
    version = re.match(r"\d{1,2}\.\d{1,3}", str(said.get("version", "")))
    return Python(version.group() if version else "", said.get("has_venv") is True, said.get("has_pip") is True,
                  clean(said.get("uv", ""), 40))


def wheels(output: bytes) -> tuple[str, ...]:
    return tuple(dict.fromkeys(WHEEL.findall(_text(output))))[:100]


def _text(data: bytes) -> str:
    return data[:256 * 1024].decode("utf-8", "replace")
