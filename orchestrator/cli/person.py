"""The person at the terminal: the confirmation before money moves, and what an interrupt means."""
from __future__ import annotations

import sys
from collections.abc import Callable, Iterable

from ..domain.event import BILLING, Owed
from ..domain.names import lasting
from ..domain.training import Agreement, Forecast
from ..errors import BadInput, Refused
from .desk import ask, note

HELD = {"lease": "a rented node", "deposit": "its deposit", "budget": "money set aside", "files": "files on the node",
        "data": "sealed data on the node", "process": "a training that runs", "keeper": ""}
CAN_READ = "the operator of this machine can read your data while it is being processed"


class Terminal:
    """`understood`: --i-understand-operator-can-read, or the stored policy. `exempt`: this machine's own lab."""

    def __init__(self, yes: bool, understood: bool, on_interrupt: str = "ask", exempt: bool = False) -> None:
        if on_interrupt not in ("ask", "wait", "detach", "stop"):
            raise BadInput(f"--on-interrupt {on_interrupt!r} is not known", hint="one of ask, wait, detach, stop")
        self._yes, self._understood, self._on_interrupt, self._exempt = yes, understood, on_interrupt, exempt
        self._insisting = False
        self.costs: Callable[[], str] = str              # of what the run holds, by the hour; "" for nothing
        self.hush: Callable[[], None] = lambda: None     # takes a live line away before something is asked

    def confirm(self, agreement: Agreement) -> bool:
        self.hush()
        for line in sheet(agreement):
            note(line)
        must_understand = agreement.stranger and not self._exempt and not self._understood
        if self._yes and must_understand:
            raise Refused("--yes on a stranger's machine needs --i-understand-operator-can-read",
                          hint="or store it: policy: {operator_can_read: true} in settings.yaml")
        return self._yes or ask("go on? [y/N] ").lower() in ("y", "yes")

    def interrupted(self, owed: Iterable[Owed], giving_back: bool) -> str:
        self.hush()
        note("")
        open_ = [o for o in owed if o.scope != "run" and o.what != "keys"]
        if giving_back:
            return self._insist()
        if not any(o.what in BILLING for o in open_):
            return "stop"
        for line in held(open_):
            note(line)
        if cost := self.costs():
            note(f"it costs {cost} while it is open")
        trains = any(o.what == "process" for o in open_)
        if self._on_interrupt == "detach" and not trains:
            note("no training has begun that could be left alone; everything is given back")
            return "stop"
        if self._on_interrupt != "ask":
            return self._on_interrupt
        if not sys.stdin.isatty():       # --yes answers for money, not for what an interrupt means
            return "stop"
        return choice(trains)

    def _insist(self) -> str:
        """The first interrupt of a release is a slip, or impatience; the second is meant."""
        if self._insisting:
            return "stop"
        self._insisting = True
        note("everything is being given back; Ctrl-C again leaves the rest for later")
        return "wait"


def held(open_: Iterable[Owed]) -> list[str]:
    """What a run holds, a line for each node; "perhaps" where the answer is not there yet."""
    by_scope: dict[str, list[str]] = {}
    for debt in open_:
        if thing := HELD.get(debt.what, debt.what):
            by_scope.setdefault(debt.scope, []).append(f"{'' if debt.certain else 'perhaps '}{thing}")
    return [f"still open, {scope}: {', '.join(things)}" for scope, things in by_scope.items()]


def choice(trains: bool) -> str:
    """What an interrupt means, from the terminal. What is no answer is asked again; another Ctrl-C is one. Only a job
    that trains can be left alone."""
    known = {"w": "wait", "s": "stop", **({"d": "detach"} if trains else {})}
    detach = "[d]etach and leave it running, " if trains else ""
    for _ in range(3):
        try:
            answer = ask(f"[w]ait on, {detach}or [s]top and give everything back? ")
        except KeyboardInterrupt:        # at this question it can only mean one thing
            note("")
            break
        if (word := known.get(answer[:1].lower())) is not None:
            return word
    return "stop"


def sheet(a: Agreement) -> list[str]:
    """What it is, what it can cost, who can read: the page that is confirmed."""
    where = f"server      {a.where}, " if a.where else "offer       "
    lines = [f"{where}{a.offer}{'  (simulated hardware)' if a.simulated else ''}"]
    if a.worst_case.units or a.stranger:
        lines += [
            f"price       {a.rate}, at most {lasting(a.seconds)}",
            f"deposit     {a.deposit} first; what is not used comes back",
            f"fee         at most {a.fee}, contained in the deposit",
            f"gas         about {a.gas if a.gas else 'nothing'}",
            f"worst case  {a.worst_case}" + ("" if a.bounded else ", with no bound if this laptop dies"),
        ]
    lines += foreseen(a.forecast) if a.forecast else []
    lines.append(f"note        {CAN_READ}" if a.stranger else "note        your own server: nothing is rented or paid")
    return lines


def foreseen(f: Forecast) -> list[str]:
    """The plan's two lines, each with its range; what cannot be told is said."""
    low, expected, high = (mib / 1024 for mib in f.memory)
    of = f" of {f.card_mib / 1024:.1f}" if f.card_mib else ""
    spare = (f.card_mib - f.memory[1]) * 100 // f.card_mib if f.card_mib else 0
    room = f": {f.verdict}" + (f", {spare} % to spare" if spare > 0 else "") if f.verdict else ""
    lines = [f"memory      about {expected:.1f}{of} GiB on the GPU ({low:.1f} to {high:.1f}){room}"]
    if not f.seconds[1]:
        return [*lines, f"time        not known: {f.why}"]
    least, whole, most = (lasting(seconds) for seconds in f.seconds)
    return [*lines, f"time        about {whole} ({least} to {most}), of it {lasting(f.job_seconds)} training and evaluation"]
