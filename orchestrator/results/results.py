"""The Results port: from sealed files at home to an adapter in the user's output folder."""
from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path

from ..domain.names import Digest, Reason, RunId
from ..domain.spool import Adapter
from ..domain.training import TrainingSpec
from ..errors import StopRun, Transient
from . import lora
from .card import card
from .evaluation import Evaluation, read_evaluation
from .output import new_folder, put, write
from .safetensors import Tensor, Unfit, read_tensors, write_tensors

ADAPTER, EVALUATION = "adapter.age", "evaluation.age"
MOST_EVALUATION = 64 * 2**20
Opener = Callable[[Path, bytes, int], bytes]    # sealed file, identity, most bytes of plaintext → plaintext


class Results:
    """`output` as the run file names it; `run` marks the folder as this run's; `opener` as of the sealing room."""

    def __init__(self, output: Path, run: RunId, opener: Opener) -> None:
        self._output, self._run, self._open = output, run, opener

    def admit(self, home: Path, spec: TrainingSpec, identity: bytes) -> Adapter:
        """Open, check, write anew and rename into the output folder. Again: the same folder with the same bytes.

        A file that does not open is moved aside (name.refused), so that it is fetched again: Transient, and
        StopRun the second time. One that opens and is not what was asked for: StopRun, other bytes will not come."""
        weights = self._opened(home, ADAPTER, identity, spec.limits.artifact_bytes)
        compared = self._opened(home, EVALUATION, identity, min(MOST_EVALUATION, spec.limits.artifact_bytes))
        knobs = lora.Knobs(spec)
        try:
            tensors = read_tensors(weights)
            trained = lora.check_tensors(tensors, knobs)
            evaluation = read_evaluation(compared)
        except Unfit as fault:
            raise StopRun(Reason.FAILED, f"the adapter that came back does not verify: {fault}",
                          hint="sealtune logs") from fault
        about = {"adapter_config.json": json.dumps(lora.config(spec, knobs, tensors), indent=2, sort_keys=True) + "\n",
                 "README.md": card(spec, knobs, evaluation, trained)}
        digest, place = self._keep(tensors, about, evaluation)
        return Adapter(digest, evaluation.base, evaluation.adapter, spec.held_out_rows, len(tensors), str(place),
                       () if trained else ("untrained: the adapter changes nothing, all its lora_B are zero",))

    def _opened(self, home: Path, name: str, identity: bytes, most: int) -> bytes:
        path, refused = home / name, home / f"{name}.refused"
        if not path.exists() and not refused.exists():
            raise Transient(f"{name} is not at home yet")
        try:
            return self._open(path, identity, most)
        except Transient as problem:
            if refused.exists():
                raise StopRun(Reason.FAILED, f"what came back cannot be opened: {problem}",
                              hint="sealtune logs") from problem
            path.replace(refused)
            raise

    def _keep(self, tensors: Mapping[str, Tensor], about: Mapping[str, str],
              evaluation: Evaluation) -> tuple[Digest, Path]:
        """Weights and what is said about them into the folder, the rows of the evaluation beside it."""
        with new_folder(self._output, self._run) as folder:
            with (folder / "adapter_model.safetensors").open("xb") as file:
                os.fchmod(file.fileno(), 0o600)
                digest = write_tensors(file, tensors)
                file.flush()
                os.fsync(file.fileno())
            for name, text in about.items():
                write(folder / name, text.encode())
            return digest, put(folder, self._output, self._run, evaluation.document)
