"""What a run will take on one offer: memory against the card, hours on the meter. Pure."""
from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from ..domain.lease import HardwareClaim, Offer
from ..domain.training import Forecast, Pace
from .cards import Card, card_of
from .fit import remedies, smallest_card, verdict
from .hours import Span, Work, around, evaluating, setting_of, training, work_of
from .memory import MIB, Need, Setting, need
from .past import correction
from .shapes import Shape

FEW_REMEDIES = 3


@dataclass(frozen=True, slots=True)
class Planned:
    """A run as far as it is known before any offer."""

    shape: Shape
    how: Setting
    work: Work
    weights: int                         # bytes of the base model's files
    paces: tuple[Pace, ...] = field(default=())

    def need(self) -> Need:
        return need(self.shape, self.how)

    @property
    def least_mib(self) -> int:
        """Below it a card surely does not do."""
        return self.need().low // MIB


def planned(shape: Shape, method: str, knobs: Sequence[tuple[str, str]], rows: int, held_out: int, row_tokens: int,
            chat: bool, weights: int = 0, paces: Iterable[Pace] = ()) -> Planned:
    """`row_tokens`: on average. `weights`: of the base model's files; 0: two bytes a parameter."""
    told = dict(knobs)
    how = setting_of(method, told, shape)
    work = work_of(rows, held_out, row_tokens, told, how, chat)
    return Planned(shape, how, work, weights or 2 * shape.parameters(), tuple(paces))


def forecast(run: Planned, offer: Offer) -> Forecast:
    """For this offer. Of the person's own server nothing is claimed; a simulated card computes on a CPU."""
    said = run.need()
    memory = (said.low // MIB, said.expected // MIB, -(-said.high // MIB))
    if offer.claim is None:
        return Forecast(memory=memory, why="what your server has is measured when the run is there")
    claim = offer.claim
    if offer.simulated:
        return Forecast(claim.gpu, claim.vram_mib, memory, verdict(said, claim.vram_mib), why="its GPU is simulated")
    card = card_of(claim.gpu, claim.vram_mib)
    if card is None:
        return Forecast(claim.gpu, claim.vram_mib, memory, verdict(said, claim.vram_mib),
                        why=f"how fast {claim.gpu} is, is not known here")
    job = job_on(run, card, claim)
    whole = whole_of(job, run)
    return Forecast(claim.gpu, claim.vram_mib, memory, verdict(said, claim.vram_mib), job.expected,
                    (whole.low, whole.expected, whole.high))


def job_on(run: Planned, card: Card, claim: HardwareClaim | None = None) -> Span:
    """Training and evaluation on this card, corrected by own past runs on the same one."""
    job = training(run.shape, run.how, run.work, card) + evaluating(run.shape, run.how, run.work, card)
    factor = correction(run.paces, claim.gpu, run.how.method) if claim else None
    if factor is None:
        return job
    seconds = job.expected * factor
    return Span(round(seconds * 0.8), round(seconds), round(seconds * 1.3))


def whole_of(job: Span, run: Planned) -> Span:
    for part in around(run.weights).values():
        job += part
    return job


def advice(run: Planned, largest_mib: int) -> str:
    """What would make it fit, in the run file's words."""
    ways = [f"{r.text} ({r.high / 2**30:.1f} GiB)" for r in remedies(run.shape, run.how, largest_mib)[:FEW_REMEDIES]]
    if larger := _larger(run.shape, run.how):
        ways.append(larger)
    return " or ".join(ways) or "a smaller model: no card that is known here holds this one"


def _larger(shape: Shape, how: Setting) -> str:
    """The smallest card, if need be with four bits and one row at a time."""
    changes: tuple[tuple[str, Setting], ...] = (
        ("", how), ("method: qlora and ", replace(how, method="qlora")),
        ("method: qlora, per_device_train_batch_size: 1 and ", replace(how, method="qlora", batch=1)))
    for text, changed in changes:
        if card := smallest_card(shape, changed):
            return f"{text}a card like {card.name}"
    return ""
