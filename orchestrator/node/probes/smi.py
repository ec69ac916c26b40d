"""`nvidia-smi -q -x` as values. The XML comes from a hostile node: no DTD is read, no entity expanded, all is bounded.

It must not compare anything with a claim (rules.py).
"""
from __future__ import annotations

import re
import xml.parsers.expat as expat  # every handler that could load or expand something refuses
from collections.abc import Mapping
from dataclasses import dataclass

from ...domain.text import clean

SIZE_MAX, DEPTH_MAX, ELEMENTS_MAX, GPUS_MAX, TEXT_MAX = 2 * 1024 * 1024, 12, 20_000, 32, 500
SIMULATED = "Simulated "


class BadOutput(ValueError):
    """Not what nvidia-smi prints."""


@dataclass(frozen=True, slots=True)
class Gpu:
    name: str
    uuid: str
    pci_device: str                      # "2684", lower-case hex; "" where it is not shown
    pci_bus: str                         # "00000000:01:00.0", lower case
    memory_mib: int
    used_mib: int
    mig: bool
    virtual: bool
    processes: int
    power_permille: int                  # enforced limit against the default; 0 where unknown


@dataclass(frozen=True, slots=True)
class Smi:
    driver: str
    cuda: str
    gpus: tuple[Gpu, ...]

    @property
    def simulated(self) -> bool:
        return any(g.name.startswith(SIMULATED) for g in self.gpus)


def parse(data: bytes) -> Smi:
    """Raises BadOutput."""
    flat = _Flattener(data)
    gpus = tuple(_gpu(fields) for fields in flat.gpus)
    return Smi(flat.top.get("driver_version", ""), flat.top.get("cuda_version", ""), gpus)


def _gpu(f: Mapping[str, str]) -> Gpu:
    device = re.fullmatch(r"(?:0x)?([0-9A-Fa-f]{4})(?:10[Dd][Ee])?", f.get("pci/pci_device_id", ""))
    default, enforced = _watts(f, "default"), _watts(f, "current") or _watts(f, "enforced")
    return Gpu(
        name=f.get("product_name", ""), uuid=f.get("uuid", ""), pci_device=device.group(1).lower() if device else "",
        pci_bus=f.get("pci/pci_bus_id", f.get("@id", "")).lower(),
        memory_mib=_integer(f.get("fb_memory_usage/total", "")), used_mib=_integer(f.get("fb_memory_usage/used", "")),
        mig=f.get("mig_mode/current_mig", "N/A").startswith("Enabled"),
        virtual=f.get("gpu_virtualization_mode/virtualization_mode", "None") not in ("None", "N/A", "Pass-Through", ""),
        processes=_integer(f.get("#processes/process_info", "0")),
        power_permille=enforced * 1000 // default if default else 0)


def _watts(f: Mapping[str, str], which: str) -> int:
    for group in ("gpu_power_readings", "power_readings"):
        if value := _integer(f.get(f"{group}/{which}_power_limit", "")):
            return value
    return 0


def _integer(text: str) -> int:
    found = re.match(r"\d{1,9}", text)
    return int(found.group()) if found else 0


class _Flattener:
    """Reads the tree once: leaf texts by path below <gpu>, and how often an element occurs, as "#path"."""

    def __init__(self, data: bytes) -> None:
        if len(data) > SIZE_MAX:
            raise BadOutput("nvidia-smi printed too much")
        self.top: dict[str, str] = {}
        self.gpus: list[dict[str, str]] = []
        self._path: list[str] = []
        self._text, self._elements = "", 0
        parser = expat.ParserCreate()
        parser.StartElementHandler, parser.EndElementHandler = self._start, self._end
        parser.CharacterDataHandler = self._characters
        parser.StartDoctypeDeclHandler = self._doctype
        parser.EntityDeclHandler = parser.UnparsedEntityDeclHandler = self._refuse
        parser.ExternalEntityRefHandler = self._refuse
        parser.SetParamEntityParsing(expat.XML_PARAM_ENTITY_PARSING_NEVER)
        try:
            parser.Parse(data, True)
        except expat.ExpatError as error:
            raise BadOutput("nvidia-smi did not print XML") from error

    def _doctype(self, name: str, system: str | None, public: str | None, internal: int) -> None:
        if internal:
            raise BadOutput("a document type with declarations")

    def _refuse(self, *_: object) -> int:
        raise BadOutput("an entity")

    def _start(self, name: str, attributes: Mapping[str, str]) -> None:
        self._elements += 1
        self._path.append(name)
        if len(self._path) > DEPTH_MAX or self._elements > ELEMENTS_MAX:
            raise BadOutput("nvidia-smi printed too many elements")
        self._text = ""
        if self._path[1:] == ["gpu"]:
            if len(self.gpus) == GPUS_MAX:
                raise BadOutput("nvidia-smi printed too many GPUs")
            self.gpus.append({"@id": clean(attributes.get("id", ""), 40)})
        elif self._path[1:2] == ["gpu"]:
            key = "#" + "/".join(self._path[2:])
            self.gpus[-1][key] = str(int(self.gpus[-1].get(key, "0")) + 1)

    def _characters(self, text: str) -> None:
        self._text = (self._text + text)[:TEXT_MAX]

    def _end(self, name: str) -> None:
        if text := clean(self._text, 120):
            if self._path[1:2] == ["gpu"] and len(self._path) > 2:
                self.gpus[-1].setdefault("/".join(self._path[2:]), text)
            elif len(self._path) == 2:
                self.top.setdefault(name, text)
        self._text = ""
        self._path.pop()
