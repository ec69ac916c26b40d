"""The numbered comparison of a node's views with each other and with the offer. Pure.

     1  nvidia-smi answered, and what it printed could be read
     2  the hardware is real where the offer does not say that it is simulated
     3  as many GPUs as offered
     4  every GPU is the offered model
     5  GPU memory within 0.90 and 1.05 of the offer, and of the model's own size
     6  the driver's own files show the same GPUs (UUIDs)
     7  the PCI bus shows the model's device number for every GPU
     8  nvidia-smi and the kernel module name the same driver version
     9  whole GPUs: no MIG slice, no virtual GPU
    10  nothing else uses the GPUs
    11  the power limit is at least 0.90 of the default
    12  no preloaded library that could lie about a GPU
    13  main memory at least 0.90 of the offer
    14  free disk at least 0.90 of the offer
    15  python3 of at least 3.8

Each is passed, failed, not checked (why) or not applicable (why). One that failed is a reason to leave; what could not
be looked at is never a pass.
"""
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from ...domain.evidence import Check, Trust
from ...domain.lease import HardwareClaim
from . import models, smi, system

Outputs = Mapping[str, tuple[int, bytes]]
NO_GPU, SIMULATION, NO_CLAIM = "no GPU", "simulated hardware", "nothing was claimed"
BUSY_MIB = 600


@dataclass(frozen=True, slots=True)
class Views:
    """Everything the probes said, parsed. `gpu` None: nvidia-smi is not there; `unreadable`: it is, but."""

    gpu: smi.Smi | None
    unreadable: str
    python: system.Python
    outputs: Outputs = field(repr=False)

    @property
    def gpus(self) -> tuple[smi.Gpu, ...]:
        return self.gpu.gpus if self.gpu else ()

    @property
    def simulated(self) -> bool:
        return self.gpu is not None and self.gpu.simulated

    def output(self, name: str) -> bytes:
        rc, data = self.outputs.get(name, (127, b""))
        return data if rc == 0 else b""


def views(outputs: Outputs) -> Views:
    rc, xml = outputs.get("nvidia-smi-xml", (127, b""))
    python = system.python(outputs.get("python", (127, b""))[1])
    if rc == 127:
        return Views(None, "", python, outputs)
    try:
        return Views(smi.parse(xml) if rc == 0 else None, "" if rc == 0 else f"exit code {rc}", python, outputs)
    except smi.BadOutput as error:
        return Views(None, str(error), python, outputs)


def compare(v: Views, claim: HardwareClaim | None) -> tuple[Check, ...]:
    wanted = claim if claim and claim.count and claim.gpu else None
    return (*_of_the_gpu(v, wanted), *_between_views(v), *_of_the_rest(v, claim))


def trust(v: Views, checks: tuple[Check, ...]) -> Trust:
    """Cross-checked only where real GPUs were looked at from several sides, and every side agreed."""
    between = [c for c in checks if c.number in (6, 7, 8)]
    crossed = v.gpus and not v.simulated and all(c.held for c in between)
    return Trust.CROSS_CHECKED if crossed and all(c.held is not False for c in checks) else Trust.CLAIMED


def _of_the_gpu(v: Views, claim: HardwareClaim | None) -> tuple[Check, ...]:
    texts = {1: "nvidia-smi can be read", 2: "the hardware is as real as the offer", 3: "as many GPUs as offered",
             4: "every GPU is the offered model", 5: "GPU memory fits the offer"}
    if v.unreadable:
        return (_failed(1, texts[1], v.unreadable), *(_unchecked(n, texts[n], "nvidia-smi") for n in (2, 3, 4, 5)))
    if not v.gpus and claim is None:
        return tuple(_none(n, t, NO_GPU) for n, t in texts.items())
    if not v.gpus:
        gone = f"{claim.count} x {claim.gpu} offered, no GPU shown" if claim else ""
        return (_failed(1, texts[1], gone), *(_unchecked(n, texts[n], NO_GPU) for n in (2, 3, 4, 5)))
    read = Check(1, texts[1], True)
    if claim is None:
        return (read, *(_none(n, texts[n], NO_CLAIM) for n in (2, 3, 4)), _memory(5, texts[5], v, 0))
    simulation_offered = claim.gpu.startswith(smi.SIMULATED)
    wrong = [g.name for g in v.gpus if not models.same(claim.gpu, g.name)]
    return (read, _rule(2, texts[2], v.simulated == simulation_offered, f"{v.gpus[0].name} for {claim.gpu}"),
            _rule(3, texts[3], len(v.gpus) >= claim.count, f"{len(v.gpus)} of {claim.count}"),
            _rule(4, texts[4], not wrong, f"{', '.join(wrong[:2])} for {claim.gpu}"),
            _memory(5, texts[5], v, claim.vram_mib))


def _memory(number: int, text: str, v: Views, claimed: int) -> Check:
    for gpu in v.gpus:
        model = models.find(gpu.name) if not v.simulated else None
        for nominal in filter(None, (claimed, model.mib if model else 0)):
            if not nominal * 90 <= gpu.memory_mib * 100 <= nominal * 105:
                return _failed(number, text, f"{gpu.memory_mib} MiB, expected {nominal}")
    return Check(number, text, True)


def _between_views(v: Views) -> tuple[Check, ...]:
    texts = {6: "the driver's files show the same GPUs", 7: "the PCI bus shows the same model",
             8: "one driver version everywhere", 9: "whole GPUs", 10: "the GPUs are free",
             11: "the power limit is not lowered"}
    if not v.gpus or v.gpu is None:
        return tuple(_none(n, t, NO_GPU) for n, t in texts.items())
    shared = [g.name for g in v.gpus if g.mig or g.virtual]
    used = [f"{g.used_mib} MiB" for g in v.gpus if g.used_mib >= BUSY_MIB or g.processes]
    capped = [g for g in v.gpus if 0 < g.power_permille < 900]
    free = (_rule(9, texts[9], not shared, f"{', '.join(shared[:2])} is a slice"),
            _rule(10, texts[10], not used, f"{', '.join(used[:2])} in use"),
            _rule(11, texts[11], not capped, f"{capped[0].power_permille} of 1000" if capped else ""))
    if v.simulated:
        return (*(_none(n, texts[n], SIMULATION) for n in (6, 7, 8)), *free)
    return (_same_uuids(6, texts[6], v), _same_devices(7, texts[7], v), _same_driver(8, texts[8], v, v.gpu), *free)


def _same_uuids(number: int, text: str, v: Views) -> Check:
    theirs = system.uuids(v.output("proc-gpus"))
    if not theirs:
        return _unchecked(number, text, "the driver's files are not visible here")
    ours = {g.uuid for g in v.gpus}
    return _rule(number, text, ours <= theirs, f"{len(ours - theirs)} GPUs are not in the driver's files")


def _same_devices(number: int, text: str, v: Views) -> Check:
    bus = list(system.nvidia_devices(v.output("pci")))
    if not bus:
        return _unchecked(number, text, "the PCI bus is not visible here")
    for gpu in v.gpus:
        model = models.find(gpu.name)
        if model is None:
            return _unchecked(number, text, f"{gpu.name} is not in our table")
        device = next((d for d in model.pci_devices if d in bus), "")
        if not device or (gpu.pci_device and gpu.pci_device not in model.pci_devices):
            return _failed(number, text, f"{gpu.name} would be {' or '.join(model.pci_devices)}")
        bus.remove(device)
    return Check(number, text, True)


def _same_driver(number: int, text: str, v: Views, shown: smi.Smi) -> Check:
    kernel = system.driver_version(v.output("proc-driver"))
    if not kernel:
        return _unchecked(number, text, "the kernel module's version is not visible here")
    return _rule(number, text, kernel == shown.driver, f"nvidia-smi {shown.driver}, kernel {kernel}")


def _of_the_rest(v: Views, claim: HardwareClaim | None) -> tuple[Check, ...]:
    liar = system.tampering(v.output("preload"))
    memory = system.memory_mib(v.output("meminfo"))
    free = system.disk_bytes(v.output("disk"))[1] // (1 << 20)
    version = tuple(int(n) for n in v.python.version.split(".")) if v.python.version else ()
    return (_rule(12, "no preloaded library that lies about GPUs", not liar, liar),
            _at_least(13, "main memory as offered", memory, claim.ram_mib if claim else 0),
            _at_least(14, "free disk as offered", free, claim.disk_gib * 1024 if claim else 0),
            _rule(15, "python3 of at least 3.8", version >= (3, 8), v.python.version or "none"))


def _at_least(number: int, text: str, shown: int, claimed: int) -> Check:
    if not claimed:
        return _none(number, text, NO_CLAIM)
    if not shown:
        return _unchecked(number, text, "the node did not say")
    return _rule(number, text, shown * 100 >= claimed * 90, f"{shown} of {claimed} MiB")


def _rule(number: int, text: str, held: bool, why: str) -> Check:
    return Check(number, text, held, "" if held else why)


def _failed(number: int, text: str, why: str) -> Check:
    return Check(number, text, False, why)


def _unchecked(number: int, text: str, why: str) -> Check:
    return Check(number, text, None, why)


def _none(number: int, text: str, why: str) -> Check:
    return Check(number, text, None, why, applies=False)
