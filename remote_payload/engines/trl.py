"""TRL's SFTTrainer under our rules: rows born in memory, checkpoints sealed in memory, numbers to the record channel.

The stock trainer writes optimizer, random state and adapter to a folder in plain. Here the same state goes into
bytes, and comes back from them; the only file that it reads on resuming holds three numbers.
"""
from __future__ import annotations

import io
import json
import math
import random
import resource
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy
import torch
from datasets import Dataset
from transformers import PrinterCallback, TrainerCallback, set_seed
from trl import SFTConfig, SFTTrainer, pack_dataset

from remote_payload.checkpoints import Kept, pack
from remote_payload.data import Tokenised
from remote_payload.faults import (
    BadCheckpoint,
    CacheOnDisk,
    GradientNotFinite,
    LossIsZero,
    LossNotFinite,
)
from remote_payload.job import Job
from remote_payload.model import ADAPTER, adapter_bytes, lora, put_adapter

OPTIMIZER, SCHEDULER, RANDOM, STATE = "optimizer.pt", "scheduler.pt", "random.pt", "trainer_state.json"
PARTS = {ADAPTER, OPTIMIZER, SCHEDULER, RANDOM, STATE}
DEFAULT_BATCH = 8                    # of "auto": fixed, so that a resumed run has the same steps


def prepare(job: Job, model: Any, tokenizer: Any, train: list[Tokenised], held_out: list[Tokenised],
            kept: Kept | None) -> Trainer:
    """A trainer with its adapter in place, not begun. Raises CacheOnDisk if rows would have touched a disk."""
    if kept is not None and set(kept.parts) != PARTS:
        raise BadCheckpoint
    set_seed(job.spec.seed)
    rows = Dataset.from_list(train)
    knobs = job.spec.knobs
    if knobs.flag("packing"):
        rows = pack_dataset(rows, knobs.integer("max_length"))
    trainer = Trainer(
        job, kept, model=model, args=settings(job, len(rows)), train_dataset=rows,
        eval_dataset=Dataset.from_list(held_out) if held_out else None,
        processing_class=tokenizer, peft_config=lora(knobs))
    trainer.remove_callback(PrinterCallback)
    if trainer.train_dataset.cache_files or (held_out and trainer.eval_dataset.cache_files):
        raise CacheOnDisk
    return trainer


def settings(job: Job, rows: int) -> SFTConfig:
    """The spec's knobs in the trainer's words; what is not a knob is a rule of the house."""
    knobs, cpu = job.spec.knobs, not torch.cuda.is_available()
    batch = knobs.text("per_device_train_batch_size")
    size = DEFAULT_BATCH if batch == "auto" else int(batch)
    accumulate = knobs.integer("gradient_accumulation_steps")
    planned = knobs.integer("max_steps")
    if planned <= 0:
        planned = math.ceil(rows / (size * accumulate)) * knobs.integer("num_train_epochs")
    steps = min(planned, job.spec.steps)
    return SFTConfig(
        output_dir=tempfile.gettempdir(), seed=job.spec.seed, max_steps=steps,
        learning_rate=knobs.decimal("learning_rate"), lr_scheduler_type=knobs.text("lr_scheduler_type"),
        warmup_steps=knobs.integer("warmup_steps"), max_length=knobs.integer("max_length"),
        per_device_train_batch_size=size, per_device_eval_batch_size=size, gradient_accumulation_steps=accumulate,
        gradient_checkpointing=not cpu, bf16=not cpu, use_cpu=cpu, packing=knobs.flag("packing"),
        logging_steps=job.records.every(steps), logging_nan_inf_filter=False, save_strategy="no", eval_strategy="no",
        report_to="none", push_to_hub=False, disable_tqdm=True, dataloader_num_workers=0, dataset_num_proc=None,
        dataloader_pin_memory=not cpu, dataset_kwargs={"skip_prepare_dataset": True})


class Trainer(SFTTrainer):  # type: ignore[misc]  # the node's libraries are not installed where types are checked
    """Saves to the publisher instead of a folder, and goes on from what the publisher once sealed."""

    def __init__(self, job: Job, kept: Kept | None, **rest: Any) -> None:
        super().__init__(**rest)
        self._job, self._kept = job, kept
        self._sealed_step = kept.step if kept else -1
        if not torch.cuda.is_available():
            for weight in (p for p in self.model.parameters() if p.requires_grad):
                weight.data = weight.data.float()
        self.add_callback(Reporter(job, self))

    def run(self) -> int:
        """Trains to the last step, from the first or from the checkpoint. Returns the steps done."""
        if self._kept is None:
            self.train()
            return int(self.state.global_step)
        if self._kept.step >= self.args.max_steps:
            self._load_from_checkpoint("")
            self.state.global_step = self._kept.step
            return self._kept.step
        self._total_train_tokens = self._kept.tokens
        with tempfile.TemporaryDirectory() as folder:
            state = {**json.loads(self._kept.parts[STATE]), "logging_steps": self.args.logging_steps}
            (Path(folder) / STATE).write_text(json.dumps(state))      # numbers only
            self.train(resume_from_checkpoint=folder)
        return int(self.state.global_step)

    def seal_checkpoint(self) -> None:
        """Everything that going on needs, sealed; not twice for the same step."""
        step = int(self.state.global_step)
        if step == self._sealed_step:
            return
        state = {"global_step": step, "epoch": self.state.epoch, "train_batch_size": self.state.train_batch_size}
        parts = {ADAPTER: adapter_bytes(self.model), OPTIMIZER: _bytes(self.optimizer.state_dict()),
                 SCHEDULER: _bytes(self.lr_scheduler.state_dict()), RANDOM: _bytes(_random_state()),
                 STATE: json.dumps(state).encode()}
        self._job.publisher.checkpoint(step, pack(step, int(self._total_train_tokens), parts), self._job.spec.keep)
        self._sealed_step = step
        self._job.rule.taken()

    def _save_checkpoint(self, model: Any, trial: Any) -> None:
        self.seal_checkpoint()

    def _load_from_checkpoint(self, resume_from_checkpoint: str, model: Any = None) -> None:
        put_adapter(self.model, self._parts()[ADAPTER])

    def _load_optimizer_and_scheduler(self, checkpoint: str | None) -> None:
        if checkpoint is not None:
            self.optimizer.load_state_dict(_state(self._parts()[OPTIMIZER]))
            self.lr_scheduler.load_state_dict(_state(self._parts()[SCHEDULER]))

    def _load_rng_state(self, checkpoint: str | None) -> None:
        if checkpoint is None:
            return
        state = _state(self._parts()[RANDOM])
        version, internal, gauss = state["python"]
        random.setstate((version, tuple(internal), gauss))
        name, keys, *rest = state["numpy"]
        numpy.random.set_state((name, numpy.array(keys, dtype=numpy.uint32), *rest))
        torch.random.set_rng_state(state["torch"])
        if torch.cuda.is_available() and state["cuda"] is not None:
            torch.cuda.set_rng_state(state["cuda"])

    def _parts(self) -> dict[str, bytes]:
        if self._kept is None:
            raise BadCheckpoint
        return dict(self._kept.parts)


class Reporter(TrainerCallback):  # type: ignore[misc]  # as above
    """One record a step, the guards against training on nothing, and the two reasons for a checkpoint."""

    def __init__(self, job: Job, trainer: Trainer) -> None:
        self._job, self._trainer = job, trainer
        self._at, self._tokens = time.monotonic(), 0

    def on_train_begin(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        self._at, self._tokens = time.monotonic(), int(self._trainer._total_train_tokens)
        self._job.rule.taken()

    def on_step_end(self, args: Any, state: Any, control: Any, **rest: Any) -> None:
        control.should_training_stop = control.should_training_stop or self._job.stop.asked
        control.should_save = self._job.stop.asked or self._job.rule.due()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, float] | None = None, **rest: Any) -> None:
        if logs is None or "loss" not in logs:
            return
        loss, norm = logs["loss"], logs.get("grad_norm", 0.0)
        if not math.isfinite(loss):
            raise LossNotFinite
        if loss == 0:
            raise LossIsZero
        if not math.isfinite(norm):
            raise GradientNotFinite
        now, tokens = time.monotonic(), int(logs.get("num_tokens", 0))
        speed = (tokens - self._tokens) / max(now - self._at, 1e-6)
        self._at, self._tokens = now, tokens
        self._job.records.step(step=state.global_step, of=state.max_steps, loss=loss, lr=logs["learning_rate"],
                               grad_norm=norm, tok=tokens, tok_s=speed, mem_mib=_memory_mib(), epoch=state.epoch)


def _random_state() -> dict[str, Any]:
    """The four generators as plain values, so that they load without running a pickle's code."""
    version, internal, gauss = random.getstate()
    name, keys, *rest = numpy.random.get_state(legacy=True)
    return {"python": [version, list(internal), gauss], "numpy": [name, numpy.asarray(keys).tolist(), *rest],
            "torch": torch.random.get_rng_state(),
            "cuda": torch.cuda.get_rng_state() if torch.cuda.is_available() else None}


def _memory_mib() -> int:
    if torch.cuda.is_available():
        return int(torch.cuda.max_memory_allocated() >> 20)
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss >> 10


def _bytes(value: Any) -> bytes:
    blob = io.BytesIO()
    torch.save(value, blob)
    return blob.getvalue()


def _state(blob: bytes) -> Any:
    return torch.load(io.BytesIO(blob), map_location="cpu", weights_only=True)
