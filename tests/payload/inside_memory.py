"""Runs inside the training environment: what a training step really takes of memory on this machine's CPU.

Cases come as a JSON list on stdin, answers leave as one on stdout; it asserts nothing. The peak is what the model holds
before the first step plus the most that torch's memory profiler saw allocated on top during two steps of the node's
trainer. Rows are all `length` tokens long, so a batch is as large as it can get.
"""
from __future__ import annotations

import gc
import json
import logging
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

REPOSITORY = sys.argv[1]
sys.path.insert(0, REPOSITORY)
logging.disable(logging.WARNING)
warnings.simplefilter("ignore")

import torch  # noqa: E402  the repository's own modules are found only now
from datasets import Dataset  # noqa: E402
from tokenizers import Tokenizer, models  # noqa: E402
from transformers import AutoConfig, AutoModelForCausalLM, PreTrainedTokenizerFast  # noqa: E402
from trl import SFTConfig, SFTTrainer  # noqa: E402

from remote_payload.model import load_base, lora  # noqa: E402
from remote_payload.spec import Knobs  # noqa: E402

STEPS = 2
Case = dict[str, Any]


def tokenizer() -> Any:
    plain = Tokenizer(models.WordLevel({"<pad>": 0, "<eos>": 1, "a": 2}, unk_token="a"))
    return PreTrainedTokenizerFast(tokenizer_object=plain, pad_token="<pad>", eos_token="<eos>", unk_token="a")


def base_of(case: Case, folder: Path) -> Any:
    """The case's model with random weights, loaded as the node loads it."""
    kind = case["config"]["model_type"]
    rest = {name: value for name, value in case["config"].items() if name != "model_type"}
    AutoModelForCausalLM.from_config(AutoConfig.for_model(kind, **rest)).save_pretrained(folder)
    tokenizer().save_pretrained(folder)
    return load_base(folder, case["method"])[0]


def trainer_of(case: Case, model: Any, folder: Path) -> SFTTrainer:
    knobs = Knobs(case["knobs"])
    length, batch = knobs.integer("max_length"), int(knobs.text("per_device_train_batch_size"))
    vocabulary = case["config"]["vocab_size"]
    ids = torch.randint(2, vocabulary, (batch * STEPS, length), generator=torch.Generator().manual_seed(1)).tolist()
    rows = Dataset.from_list([{"input_ids": row, "labels": row} for row in ids])
    settings = SFTConfig(
        output_dir=str(folder), max_steps=STEPS, max_length=length, per_device_train_batch_size=batch, bf16=False,
        use_cpu=True, gradient_checkpointing=case["checkpointing"], save_strategy="no", report_to="none",
        disable_tqdm=True, dataloader_pin_memory=False, dataset_kwargs={"skip_prepare_dataset": True})
    full = case["method"] == "full"
    made = SFTTrainer(model=model, args=settings, train_dataset=rows, processing_class=tokenizer(),
                      peft_config=None if full else lora(knobs))
    for weight in (p for p in made.model.parameters() if p.requires_grad):
        weight.data = weight.data.float()                # as the node does on a CPU
    return made


def held(model: Any) -> dict[str, int]:
    """Bytes of all weights with what their quantisation needs, and of those that are trained."""
    weights = list(model.parameters())
    bytes_of = {w.untyped_storage().data_ptr(): w.untyped_storage().nbytes() for w in weights}
    for weight in weights:
        state = getattr(weight, "quant_state", None)
        for part in (state.absmax, *((state.state2.absmax,) if state.nested else ())) if state is not None else ():
            bytes_of[part.untyped_storage().data_ptr()] = part.untyped_storage().nbytes()
    return {"weights": sum(bytes_of.values()), "trained": sum(w.numel() for w in weights if w.requires_grad),
            "buffers": sum(b.untyped_storage().nbytes() for b in model.buffers())}


def most_on_top(trainer: SFTTrainer) -> int:
    """The most bytes that were allocated on top of what was there before."""
    gc.collect()
    with torch.autograd.profiler.profile(profile_memory=True) as profiled:
        trainer.train()
    now = most = 0
    moves = [e for e in profiled.kineto_results.events() if e.name() == "[memory]"]
    for move in sorted(moves, key=lambda e: e.start_ns()):
        now += move.nbytes()
        most = max(most, now)
    return most


def measured(case: Case) -> dict[str, int]:
    with tempfile.TemporaryDirectory() as folder:
        model = base_of(case, Path(folder))
        trainer = trainer_of(case, model, Path(folder))
        there = held(trainer.model)
        on_top = most_on_top(trainer)
        return {**there, "on_top": on_top, "peak": there["weights"] + there["buffers"] + on_top}


answers = [measured(case) for case in json.load(sys.stdin)]
sys.stdout.write(f"\n{json.dumps(answers)}\n")              # the trainer prints its own lines before
