"""The demo's run: its invented data and its run file, written anew each time so that every demo is the same."""
from __future__ import annotations

from pathlib import Path

from . import task, up

RUN_FILE = """\
# the demo: a tiny model learns invented diagnosis codes on this machine
model: {model}
dataset: visits.jsonl
format: messages
method: lora
market: lab
hours: 1
budget: "1.00 USDC"
output: ./adapters/{name}
node: {{gpu: ["RTX 4090"], vram_gib: 24}}
training:
{training}
"""
REHEARSAL = {"rehearsal_steps": "20", "rehearsal_step_seconds": "0.05"}


def write_run_file(folder: Path, engine: str = "trl") -> Path:
    """Path of the run file. The output folder is a new one each time: an adapter is never overwritten."""
    folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    task.write(folder / "visits.jsonl")
    taken = {p.name for p in (folder / "adapters").glob("demo-*")}
    name = next(f"demo-{n}" for n in range(1, len(taken) + 2) if f"demo-{n}" not in taken)
    knobs = {**task.KNOBS, **(REHEARSAL if engine == "rehearsal" else {})}
    training = "\n".join(f"  {key}: {_yaml(key, value)}" for key, value in knobs.items())
    text = RUN_FILE.format(model=up.MODEL, name=name, training=training)
    path = folder / "demo.yaml"
    path.write_text(text + ("engine: rehearsal\n" if engine == "rehearsal" else ""))
    return path


def _yaml(key: str, value: str) -> str:
    return f"[{value}]" if key == "modules_to_save" else value
