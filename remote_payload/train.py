"""The second story: one training job, top to bottom.

The key comes on standard input and stays in memory; rows are opened in memory; what leaves is sealed first.
Every step of the way is a record. What goes wrong is a type and a place in our code, and nothing else.
It must not write a row, a weight or a key to any disk, and must not reach for the network.
"""
from __future__ import annotations

import logging
import time
import warnings

from remote_payload import data, engines, evaluate
from remote_payload.evaluate import Figures
from remote_payload.faults import Stopped
from remote_payload.job import Job, open_cargo, run
from remote_payload.model import adapter_bytes, check_base, load_base

NOTHING = Figures(None, None, 0, 0)


def main(argv: list[str]) -> int:
    """Hardens the process, runs the story under its records, returns the exit code: 0 done, 1 failed, 3 stopped."""
    return run(argv, train)


def train(job: Job) -> None:
    spec = job.spec

    # 1. Key, rows and checkpoint, before anything heavy: bad input fails in a hundredth of a second.
    rows, kept = open_cargo(job)
    check_base(job.base, spec)

    # 2. Libraries may quote a prompt in a warning, so they are silent before they see one.
    job.records.phase("loading")
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    engine = engines.load(spec.engine)
    model, tokenizer = load_base(job.base, spec.method)

    # 3. Ids and labels of our own making; rows that max_length leaves nothing of are counted and left out.
    longest = spec.knobs.integer("max_length")
    train_ids = data.tokenise(rows, rows.train, tokenizer, longest)
    held_out_ids = data.tokenise(rows, rows.held_out, tokenizer, longest)
    left_out = len(rows.train) - len(train_ids)
    if left_out:
        job.records.emit("advice", rule="too-long", did=str(left_out))
    trainer = engine.prepare(job, model, tokenizer, train_ids, held_out_ids, kept)

    # 4. Training. A request to stop is heard between two steps; then a last checkpoint is sealed.
    job.records.phase("training")
    begun = time.monotonic()
    job.stop.patient = True
    steps = trainer.run()
    seconds = time.monotonic() - begun
    adapter = adapter_bytes(trainer.model)
    job.stop.patient = False
    if job.stop.asked:
        trainer.seal_checkpoint()
        raise Stopped

    # 5. The base is the same model with the adapter off. Stopped here, the finished adapter is not lost.
    job.records.phase("evaluating")
    try:
        base_side = compared = NOTHING
        if held_out_ids:
            compared = evaluate.measure(trainer, tokenizer, rows, held_out_ids, spec.knobs, adapter=True)
            base_side = evaluate.measure(trainer, tokenizer, rows, held_out_ids, spec.knobs, adapter=False)
    except Stopped:
        job.stop.patient = True
        trainer.seal_checkpoint()
        raise
    job.records.emit("result", **evaluate.result(base_side, compared, steps, seconds))

    # 6. What goes home, sealed to a recipient whose other half never was here.
    job.records.phase("sealing")
    job.stop.patient = True
    job.publisher.publish("adapter.age", adapter)
    job.publisher.publish("evaluation.age", evaluate.document(rows, base_side, compared))
    job.records.phase("done")
