"""What a person sees on stderr while a run goes on: one live line on a terminal, plain lines elsewhere.

Never raises, never blocks, decides nothing. Text of the node arrives here already sanitised.
"""
from __future__ import annotations

import sys
import time

from ..domain.document import decode
from ..domain.event import Event, Kind
from ..domain.evidence import NO_GPU, HardwareReport
from ..domain.names import Instant
from ..domain.progress import Arrived, Finished, Record, RecordKind, Seen, Working
from ..domain.training import DatasetFacts

WORDS = {
    "check": "checking the data", "model": "resolving the base model", "seal": "sealing the data", "open": "renting a node",
    "meet": "waiting for the node", "arm": "setting the dead-man's switch", "inspect": "inspecting the hardware",
    "install": "installing the pinned environment", "challenge": "challenging the hardware",
    "fetch": "fetching the base model", "ship": "shipping ciphertext", "start": "starting the training",
    "hold": "paying for the next slice", "collect": "opening and checking the adapter", "stop": "stopping the job",
    "wipe": "wiping the node", "report": "signing the report", "end": "ending the lease", "settle": "settling the deposit",
    "destroy": "destroying the lease's keys", "forget": "destroying the run's key",
}
ON_YOUR_SERVER = {"open": "taking your server into use", "meet": "going to your server", "end": "leaving your server",
                  "settle": "closing the books: nothing was to be paid"}
EVERY_SECONDS = 5                        # a plain line of progress at most this often


class Lines:
    """One line a step, and a line of progress every few seconds."""

    def __init__(self) -> None:
        self._last, self._waiting, self._said = 0.0, "", ""

    def event(self, event: Event) -> None:
        for text in told(event):
            self.say(text)

    def seen(self, seen: Seen) -> None:
        text = watched(seen)
        if text and text != self._said and (not is_often(seen) or time.monotonic() - self._last > EVERY_SECONDS):
            self._last, self._said = time.monotonic(), text
            self.say(text)

    def waiting(self, problem: str, until: Instant) -> None:
        """Once for the same words, however often it is tried."""
        if problem != self._waiting:
            self._waiting = problem
            self.say(f"  {problem}; trying again until {time.strftime('%H:%M:%S', time.localtime(until))}")

    def close(self) -> None: ...

    def say(self, text: str) -> None:
        print(text, file=sys.stderr, flush=True)


class Live(Lines):
    """The same on a terminal, with the training's progress in one live line."""

    def __init__(self) -> None:
        super().__init__()
        from rich.console import Console
        from rich.status import Status
        from rich.text import Text

        self._console = Console(stderr=True, highlight=False, markup=False)
        self._status = Status("", console=self._console)
        self._plain = Text               # the status line would read markup in a plain string

    def event(self, event: Event) -> None:
        super().event(event)
        if event.kind is Kind.INTENDED and event.deed.step in WORDS:
            self._status.update(self._plain(begun(event)))
            self._status.start()
        elif event.kind is not Kind.NOTED and event.deed.step != "start":
            self._status.stop()          # nothing moves while a question is asked

    def seen(self, seen: Seen) -> None:
        if text := watched(seen):
            self._status.update(self._plain(text))
            self._status.start()         # a question may have stopped it

    def close(self) -> None:
        self._status.stop()

    def say(self, text: str) -> None:
        self._console.print(text)


def screen() -> Lines:
    return Live() if sys.stderr.isatty() else Lines()


def told(event: Event) -> list[str]:
    """What a journal row means to a person; [] for most."""
    step = event.deed.step
    if event.kind is Kind.INTENDED:
        return [begun(event)] if step in WORDS else []
    if event.kind is Kind.WAIVED:
        return [f"  given up: {step} of {event.deed.scope}: {event.private['why']}"]
    if event.kind is Kind.NOTED and step == "left" and event.public["reason"] != "done":
        return [f"  leaving the node: {event.private.get('detail') or event.public['reason']}"]
    if event.kind is Kind.DONE and step == "check":
        return checked(decode(DatasetFacts, event.public, event.private))
    if event.kind is Kind.DONE and step in ("inspect", "challenge"):
        report = decode(HardwareReport, event.public, event.private)
        seen = [f"  {report.gpu or NO_GPU}"] if step == "inspect" and report.mismatch is None else []
        return seen + [
            f"  {'simulated hardware; ' if report.simulated else ''}{c.text}: {c.word}{f' ({c.why})' if c.why else ''}"
            for c in report.checks if c.word in ("failed", "not checked")]
    return []


def checked(facts: DatasetFacts) -> list[str]:
    """What is known of the data before anything is paid."""
    said = [f"  {facts.rows} rows of {facts.format}: {facts.train} to train on, {facts.held_out} held out"]
    return said + [f"  {text}" for text in (facts.tokens, *facts.warnings) if text]


def begun(event: Event) -> str:
    """What a step that begins is called; on the person's own server no word of a market."""
    said = event.public if isinstance(event.public, dict) else {}
    market = said.get("market") or (said.get("lease") or {}).get("market")
    words = {**WORDS, **ON_YOUR_SERVER} if market == "ssh" else WORDS
    return words[event.deed.step]


def watched(seen: Seen) -> str:
    match seen:
        case Record(kind=RecordKind.STEP):
            of = f"/{seen.get('of')}" if seen.get("of") else ""
            return f"  step {seen.get('step')}{of}  loss {seen.get('loss')}  lr {seen.get('lr')}  {seen.get('tok_s')} tok/s"
        case Record(kind=RecordKind.PHASE):
            return f"  {seen.get('phase')}"
        case Record(kind=RecordKind.ERROR):
            return f"  error: {seen.get('type')} at {seen.get('where')}"
        case Record(kind=RecordKind.ADVICE):
            return f"  advice: {seen.get('rule')}: {seen.get('did')}"
        case Arrived(file):
            return f"  home: {file.name}, {file.size} bytes"
        case Working(what, done, of):
            return f"  {what}" + (f": {done:,} of {of:,}" if of else f": {done:,}" if done else "")
        case Finished(how):
            return f"  training {how}"
    return ""


def is_often(seen: Seen) -> bool:
    return isinstance(seen, Working) or (isinstance(seen, Record) and seen.kind is RecordKind.STEP)
