"""The lab node's `nvidia-smi`: a labelled simulation. Its product name begins with "Simulated", and so does the verdict.

It prints what the node room asks for and nothing of a real machine; there is no GPU behind it.
"""
from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

NAME = "Simulated RTX 4090"
DRIVER = "580.65.06"


@dataclass(frozen=True, slots=True)
class SimulatedGpu:
    name: str = NAME
    memory_mib: int = 24564
    driver: str = DRIVER
    uuid: str = "GPU-51d0c0de-0000-4000-8000-000000000000"

    def xml(self) -> str:
        return f"""<?xml version="1.0" ?>
<!DOCTYPE nvidia_smi_log SYSTEM "nvsmi_device_v12.dtd">
<nvidia_smi_log>
\t<driver_version>{self.driver}</driver_version>
\t<cuda_version>13.0</cuda_version>
\t<attached_gpus>1</attached_gpus>
\t<gpu id="00000000:01:00.0">
\t\t<product_name>{self.name}</product_name>
\t\t<mig_mode><current_mig>N/A</current_mig><pending_mig>N/A</pending_mig></mig_mode>
\t\t<uuid>{self.uuid}</uuid>
\t\t<gpu_virtualization_mode><virtualization_mode>None</virtualization_mode></gpu_virtualization_mode>
\t\t<pci><pci_device_id>268410DE</pci_device_id><pci_bus_id>00000000:01:00.0</pci_bus_id></pci>
\t\t<fb_memory_usage><total>{self.memory_mib} MiB</total><used>1 MiB</used></fb_memory_usage>
\t\t<gpu_power_readings><current_power_limit>450.00 W</current_power_limit>\
<default_power_limit>450.00 W</default_power_limit></gpu_power_readings>
\t\t<processes></processes>
\t</gpu>
</nvidia_smi_log>
"""


def write(folder: Path, gpu: SimulatedGpu) -> None:
    """`folder`/nvidia-smi, executable by everybody, answering -q -x, --query-gpu and a plain call."""
    (folder / "nvidia-smi.xml").write_text(gpu.xml())
    script = folder / "nvidia-smi"
    script.write_text(f"""#!/bin/sh
# A simulation for the lab: there is no GPU here.
case "$*" in
  *--query-gpu*) echo "1, {gpu.memory_mib}, 0, 30, 20.00" ;;
  *-q*-x*|*-x*-q*) cat "$(dirname "$0")/nvidia-smi.xml" ;;
  *) echo "{gpu.name} ({gpu.memory_mib} MiB), driver {gpu.driver}: a simulation, no GPU" ;;
esac
""")
    script.chmod(0o755)
