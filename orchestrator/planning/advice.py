"""Knowledge or behaviour: would fine-tuning serve, or retrieval (RAG), or both. Pure; each rule names its source.

Training teaches how to answer: form, tone, a task. Facts that a model shall know are better looked up when it is asked.
It must not be surer than the sources: they are averages over other people's tasks.
"""
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal

from . import suggest
from .models import must_be_named

SOURCES = {
    "ovadia": "Ovadia et al., Fine-Tuning or Retrieval?, arXiv 2312.05934",
    "gekhman": "Gekhman et al., Does Fine-Tuning LLMs on New Knowledge Encourage Hallucinations?, arXiv 2405.05904",
    "balaguer": "Balaguer et al., RAG vs Fine-tuning, arXiv 2401.08406",
    "raft": "Zhang et al., RAFT, arXiv 2403.10131",
    "lima": "Zhou et al., LIMA, arXiv 2305.11206",
    "land": "Zhao et al., LoRA Land, arXiv 2405.00732",
    "biderman": "Biderman et al., LoRA Learns Less and Forgets Less, arXiv 2405.09673",
    "openai": "OpenAI, fine-tuning guide",
}
QUESTIONS: dict[str, tuple[str, dict[str, str]]] = {
    "need": ("what should get better?", {
        "behaviour": "how it answers: form, tone, labels, a task done right",
        "knowledge": "what it knows: facts from your documents",
        "both": "the one and the other", "unsure": "I cannot tell"}),
    "facts": ("how often do the facts in its answers change?", {
        "never": "never, or there are none", "monthly": "every few weeks or months", "daily": "every day or week"}),
    "cite": ("must an answer name where it comes from?", {"no": "no", "yes": "yes, somebody will look it up"}),
    "prompt": ("how far does a good prompt with a few examples get?", {
        "untried": "not tried yet", "short": "not far enough", "works": "it does the job"}),
    "answer": ("what does an answer look like?", {
        "label": "one of a few words", "short": "a line, a few fields, JSON", "long": "free text",
        "reasoning": "several steps that build on each other"}),
}                                        # and the sixth, a number: how many examples there are
FEWEST, FEW, MANY = 50, 200, 10_000      # examples: too few to begin, fewer than mostly do, more than mostly are needed


@dataclass(frozen=True, slots=True)
class Answers:
    """The words of QUESTIONS. `examples`: pairs of input and right answer."""

    need: str = "unsure"
    facts: str = "never"
    cite: str = "no"
    examples: int = 0
    prompt: str = "untried"
    answer: str = "short"


@dataclass(frozen=True, slots=True)
class Reason:
    text: str
    source: str


@dataclass(frozen=True, slots=True)
class Training:
    """Where to begin, and what to try first because it costs less."""

    model: str
    smaller: str
    learning_rate: Decimal
    epochs: int


@dataclass(frozen=True, slots=True)
class Advice:
    """`verdict`: fine-tune | rag | both. `first`: what to do before. `training`: None where nothing is to be trained."""

    verdict: str
    reasons: tuple[Reason, ...]
    first: tuple[Reason, ...]
    training: Training | None


def advise(said: Answers) -> Advice:
    look_up, train = looks_up(said), trains(said)
    verdict = "both" if look_up and train else "rag" if look_up else "fine-tune"
    reasons = tuple(_reason(text, source) for text, source in _reasons(said, verdict))
    first = tuple(_reason(text, source) for text, source in _first(said, verdict))
    return Advice(verdict, reasons, first, training(said) if verdict != "rag" else None)


def looks_up(said: Answers) -> bool:
    """Facts are asked for, they move, or they must be shown."""
    return said.need in ("knowledge", "both") or said.facts != "never" or said.cite == "yes"


def trains(said: Answers) -> bool:
    """The way of answering is asked for; who cannot tell is believed where a prompt is known to fall short, or where nothing
    speaks for looking up."""
    if said.need == "unsure":
        return said.prompt == "short" or not looks_up(said)
    return said.need != "knowledge"


def training(said: Answers) -> Training:
    model = suggest.MODELS[said.answer]
    rows = (said.examples or FEWEST) * 9 // 10           # the rest is held out
    return Training(model, suggest.SMALLER[said.answer], suggest.learning_rate(must_be_named(model).parameters()),
                    suggest.epochs(max(1, rows)))


def _reason(text: str, source: str) -> Reason:
    return Reason(text, SOURCES[source])


def _reasons(said: Answers, verdict: str) -> Iterator[tuple[str, str]]:
    if said.need in ("knowledge", "both"):
        yield "facts that are looked up are answered better than facts that were trained", "ovadia"
        yield "new facts are learned slowly, and once they are learned a model invents more of its own", "gekhman"
    if said.facts != "never":
        yield f"facts that change {said.facts} would need a training each time; a looked-up page is new at once", "ovadia"
    if said.cite == "yes":
        yield "an answer can quote its source word by word only where the source was looked up", "raft"
    if verdict == "fine-tune":
        yield "how to answer is taught by few good examples: a thousand chosen ones did it for a 65B model", "lima"
        if said.answer in ("label", "short"):
            yield "small models, trained in four bits, were 10 points better than GPT-4 over 31 narrow tasks", "land"
    if verdict == "both":
        yield "the gains add up: in one field training brought 6 points, and looking up 5 more", "balaguer"
        yield "train on rows that hold found passages, also wrong ones: then it learns to use the right one", "raft"
    if verdict != "rag":
        yield "an adapter learns less than all weights would, and forgets less of what the model could do", "biderman"


def _first(said: Answers, verdict: str) -> Iterator[tuple[str, str]]:
    if said.prompt == "untried":
        yield "try a good prompt with a few examples: it costs nothing, and shows what is missing", "openai"
    if said.prompt == "works" and verdict != "rag":
        yield "a prompt does it already: train only to have it from a smaller model, or without the long prompt", "openai"
    if verdict == "rag":
        return
    if said.examples < FEWEST:
        yield f"write at least {FEWEST} examples, better {FEW}: {said.examples} are too few to tell", "openai"
    elif said.examples < FEW:
        yield f"{said.examples} examples may do for a narrow task; a few hundred are the usual beginning", "openai"
    elif said.examples > MANY:
        yield f"train on a part of the {said.examples} first: few and good ones often teach as much, and cost a part", "lima"
