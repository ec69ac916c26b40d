"""Play a run to its end and say what came of it: shared by `run`, `demo` and `resume`."""
from __future__ import annotations

import signal
import traceback
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from typing import TYPE_CHECKING

from .. import steps, wiring
from ..domain.event import BILLING, Event, Kind, owed
from ..domain.evidence import NO_GPU
from ..domain.names import RunId
from ..errors import EXIT_INCOMPLETE, Detached, Interrupted, NoOffer, NoSuchRun, RunLocked, SealtuneError, StillOwed
from ..rental import run as play_run
from ..sweep import costs, still_open
from .desk import Desk
from .person import Terminal
from .render import show_json, show_result
from .result import result, without_gpu
from .screen import screen

if TYPE_CHECKING:
    from ..ports import Journals
    from .shapes.runs import Verdict

SIMULATED = "simulated hardware: a GPU's name was played, no GPU was there"
REHEARSED = "a rehearsal: nothing was trained, the figures are played"


def play(desk: Desk, run: RunId, person: Terminal, json: bool, *, new: bool = False) -> int:
    """Exit code of the run. Whatever happened, the result is printed; an error is raised after it, unless `--json`
    prints it."""
    problem: SealtuneError | None = None
    try:
        with closing(screen()) as shown, desk.house(run, shown, person, new=new) as house:
            person.hush, person.costs = shown.close, lambda: costs(house.journal.events())
            play_run(house, wiring.task_of(wiring.run_file_of(desk.settings, run), desk.settings))
    except SealtuneError as failure:
        problem = failure
    except KeyboardInterrupt:
        problem = Interrupted("interrupted, nothing is rented", hint=f"sealtune resume {run} goes on with it")
    except Exception as bug:  # noqa: BLE001 why: whatever broke, the person must learn what may still bill
        traceback.print_exc()
        problem = SealtuneError(f"unexpected {type(bug).__name__}", hint="please report it")
    with undisturbed():
        return said(desk, run, problem, json, new)


@contextmanager
def undisturbed() -> Iterator[None]:
    """What is left is a moment's work: an impatient Ctrl-C would only cost the person the words about what still bills."""
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def said(desk: Desk, run: RunId, problem: SealtuneError | None, json: bool, new: bool) -> int:
    """The summary. Raises the problem after it."""
    book = wiring.journals(desk.settings)
    begun = run in book.runs()
    rows = book.read(run) if begun else ()
    problem = explained(desk, run, rows, problem) if problem else None
    if new and not begun:                # the market was not even reached: nothing that a `resume` could go on from
        wiring.forget_run(desk.settings, run)
    verdict, line, code = judge(desk, run, rows, problem)
    found = result(run, wiring.home_of(desk.settings, run), rows, verdict, problem)
    if json:
        show_json(found)
        return problem.exit_code if problem else code
    if problem and not found["stages"]:
        raise problem
    show_result(found, line)
    if problem:
        raise problem
    return code


def explained(desk: Desk, run: RunId, rows: Sequence[Event], failure: SealtuneError) -> SealtuneError:
    """The failure, or StillOwed in its place when the journal says that something is not given back. A run that is locked
    by another process, or was left on purpose, is in good hands."""
    if isinstance(failure, RunLocked | NoSuchRun | Detached):
        return failure
    if isinstance(failure, Interrupted) and not rows:
        failure.hint = None              # it never began
    cause = "interrupted" if isinstance(failure, Interrupted) else getattr(failure, "cause", str(failure))
    return still_open(run, rows, cause) or in_the_way(desk, run, failure)


def in_the_way(desk: Desk, run: RunId, failure: SealtuneError) -> SealtuneError:
    """A market with no machine to offer may have none because another run of ours still holds it."""
    book = wiring.journals(desk.settings)
    if isinstance(failure, NoOffer) and any(bills(book, other) for other in book.runs() if other != run):
        failure.hint = "an open rental of yours may be in the way: sealtune rentals, sealtune end --leaked"
    return failure


def bills(book: Journals, run: RunId) -> bool:
    """False also where the journal cannot be read, which `rentals` tells."""
    try:
        return any(o.what in BILLING for o in owed(book.read(run)))
    except SealtuneError:
        return False


def without_report(rows: Sequence[Event]) -> str:
    used = any(e.deed.step == steps.OPEN.name and e.kind is Kind.DONE for e in rows)
    return "none yet: the report is not signed" if used else "no node was taken into use, so there is no report"


def judge(desk: Desk, run: RunId, rows: Sequence[Event],
          problem: SealtuneError | None) -> tuple[Verdict | None, str, int]:
    """The audit of what the run left, as (verdict, line, exit code); (None, why, …) where nothing was rented. `rows`: none
    of a run that never began, which its journals do not know."""
    from ..audit.notary import CLOSING
    from ..audit.verify import audit

    home = wiring.home_of(desk.settings, run)
    if isinstance(problem, Detached):
        return None, "none yet: the node goes on with the training", problem.exit_code
    if isinstance(problem, StillOwed):
        return None, "none yet: not everything is given back", problem.exit_code
    if not any(home.glob("lease-*/report.json")):
        return None, without_report(rows), problem.exit_code if problem else EXIT_INCOMPLETE
    if not (home / CLOSING).is_file():
        return None, "none yet: the record of the run is not closed", problem.exit_code if problem else EXIT_INCOMPLETE
    audited = audit(home, wiring.trusted_key(desk.settings), wiring.this_release())
    open_ = [c for c in audited.checks if c.word in ("failed", "not checked")]
    line = f"{audited.verdict.value}, {len(audited.checks) - len(open_)} of {len(audited.checks)} checks without objection"
    line += f"; {'; '.join(f'{c.text}: {c.why}' for c in open_[:3])}" if open_ else ""
    rehearsed = wiring.run_file_of(desk.settings, run).engine == "rehearsal"
    notes = [SIMULATED] * audited.simulated + [REHEARSED] * rehearsed
    notes += ["no GPU" if rehearsed else NO_GPU] * without_gpu(rows)
    return audited.verdict.value, f"{line} ({'; '.join(notes)})" if notes else line, audited.verdict.exit_code
