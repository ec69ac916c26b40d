"""The model card beside the weights: what this adapter is, what was measured, and what it can give away. Pure.

It is made to be published: figures and the run's own knobs, no row, no path, no name of a person, a node or a run, and
nothing that was not known here.
"""
from __future__ import annotations

import json

from ..domain.training import TrainingSpec
from .evaluation import Evaluation
from .lora import Knobs

CARD = """---
base_model: {repo}
library_name: peft
pipeline_tag: text-generation
tags:
- lora
- sealtune
---

# LoRA adapter for {name}

| | |
|---|---|
| base model | `{name}` |
| commit | `{commit}` |
| licence | not recorded here; the base model's page says on which terms it may be used |
| method | {method}, rank {rank}, alpha {alpha}, dropout {dropout} |
| trained modules | {modules} |
| training data | private, not published |

## What it can give away

**An adapter can leak what it was trained on.** Whoever has it and the base model can try to make it say text of its
training rows, or find out whether a text was among them. Publish it only if its training data could be published too.

## Evaluation

{figures}
{state}
## Use

```python
from peft import AutoPeftModelForCausalLM

model = AutoPeftModelForCausalLM.from_pretrained("path/to/this/folder")
```

`adapter_config.json` names the base model and its commit. The tokenizer is the base model's.
"""
FIGURES = """On {n} rows that were kept out of the training (exact match: on those of them that were asked as questions), as
the machine that trained it reported; nobody measured again.

| | base model | adapter |
|---|---|---|
| exact match | {exact_base} | {exact_adapter} |
| loss | {loss_base} | {loss_adapter} |
"""
UNTRAINED = "**It was not trained: all of its lora_B are zero, and it changes nothing.**\n"


def card(spec: TrainingSpec, knobs: Knobs, evaluation: Evaluation, trained: bool) -> str:
    """README.md of the adapter's folder."""
    modules = ", ".join(f"`{name}`" for name in (*knobs.targets, *knobs.saved))
    return CARD.format(
        repo=json.dumps(spec.base.repo), name=spec.base.repo, commit=spec.base.commit, method=spec.method,
        rank=knobs.rank, alpha=knobs.alpha, dropout=knobs.dropout, modules=modules,
        figures=figures(spec, evaluation), state="" if trained else f"{UNTRAINED}\n")


def figures(spec: TrainingSpec, evaluation: Evaluation) -> str:
    base, adapter = evaluation.base, evaluation.adapter
    if not (adapter.loss or adapter.exact_match):
        return "Nothing was measured.\n"
    told = {f"{name}_{side}": value or "not measured" for side, of in (("base", base), ("adapter", adapter))
            for name, value in (("exact", of.exact_match), ("loss", of.loss))}
    return FIGURES.format(n=spec.held_out_rows, **told)
