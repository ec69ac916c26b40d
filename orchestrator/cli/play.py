"""Play a run to its end and say what came of it: shared by `run`, `demo` and `resume`."""
from __future__ import annotations

import traceback
from contextlib import closing
from typing import TYPE_CHECKING

from .. import wiring
from ..domain.event import BILLING, owed
from ..domain.evidence import NO_GPU
from ..domain.names import RunId
from ..errors import EXIT_INCOMPLETE, Detached, Interrupted, NoOffer, NoSuchRun, RunLocked, SealtuneError, StillOwed
from ..rental import run as play_run
from .desk import Desk
from .person import Terminal
from .render import show_json, show_result
from .result import result, without_gpu
from .screen import screen

if TYPE_CHECKING:
    from ..ports import Journals

SIMULATED = "simulated hardware: a GPU's name was played, no GPU was there"
REHEARSED = "a rehearsal: nothing was trained, the figures are played"


def play(desk: Desk, run: RunId, person: Terminal, json: bool, *, new: bool = False) -> int:
    """Exit code of the run. Whatever happened, the result is printed; an error is raised after it, unless `--json`
    prints it."""
    problem: SealtuneError | None = None
    try:
        with closing(screen()) as shown, desk.house(run, shown, person, new=new) as house:
            person.hush = shown.close
            play_run(house, wiring.task_of(wiring.run_file_of(desk.settings, run), desk.settings))
    except SealtuneError as failure:
        problem = still_open(desk, run, failure)
    except KeyboardInterrupt:
        problem = still_open(desk, run, Interrupted("interrupted, nothing is rented"))
    except Exception as bug:  # noqa: BLE001 why: whatever broke, the person must learn what may still bill
        traceback.print_exc()
        problem = still_open(desk, run, SealtuneError(f"unexpected {type(bug).__name__}", hint="please report it"))
    book = wiring.journals(desk.settings)
    begun = run in book.runs()
    if new and not begun:                # the market was not even reached: nothing that a `resume` could go on from
        wiring.forget_run(desk.settings, run)
    verdict, line, code = judge(desk, run, problem)
    found = result(run, wiring.home_of(desk.settings, run), book.read(run) if begun else (), verdict, problem)
    if json:
        show_json(found)
        return problem.exit_code if problem else code
    if problem and not found["stages"]:
        raise problem
    show_result(found, line)
    if problem:
        raise problem
    return code


def still_open(desk: Desk, run: RunId, failure: SealtuneError) -> SealtuneError:
    """The failure, or StillOwed in its place when the journal says that something is not given back, with the commands
    for it. A run that is locked by another process, or was left on purpose, is in good hands."""
    if isinstance(failure, RunLocked | NoSuchRun | Detached):
        return failure
    book = wiring.journals(desk.settings)
    debts = tuple(o for o in owed(book.read(run) if run in book.runs() else ()) if o.scope != "run" and o.what != "keys")
    if not debts:
        return in_the_way(desk, run, failure)
    found = failure if isinstance(failure, StillOwed) else StillOwed(debts, "interrupted" if isinstance(
        failure, Interrupted) else str(failure))
    found.hint = f"sealtune end {run} gives it back, sealtune resume {run} goes on where that is possible"
    return found


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


def judge(desk: Desk, run: RunId, problem: SealtuneError | None) -> tuple[str | None, str, int]:
    """The audit of what the run left, as (verdict, line, exit code); (None, why, …) where nothing was rented."""
    from ..audit.verify import audit

    home = wiring.home_of(desk.settings, run)
    if isinstance(problem, Detached):
        return None, "none yet: the node goes on with the training", problem.exit_code
    if not any(home.glob("lease-*/report.json")):
        return None, "no node was taken into use, so there is no report", problem.exit_code if problem else EXIT_INCOMPLETE
    if isinstance(problem, StillOwed):
        return None, "not everything is given back; the report is not closed", problem.exit_code
    audited = audit(home, wiring.trusted_key(desk.settings), wiring.this_release())
    open_ = [c for c in audited.checks if c.word in ("failed", "not checked")]
    line = f"{audited.verdict.value}, {len(audited.checks) - len(open_)} of {len(audited.checks)} checks without objection"
    line += f"; {'; '.join(f'{c.text}: {c.why}' for c in open_[:3])}" if open_ else ""
    rehearsed = wiring.run_file_of(desk.settings, run).engine == "rehearsal"
    notes = [SIMULATED] * audited.simulated + [REHEARSED] * rehearsed
    notes += ["no GPU" if rehearsed else NO_GPU] * without_gpu(wiring.journals(desk.settings).read(run))
    return audited.verdict.value, f"{line} ({'; '.join(notes)})" if notes else line, audited.verdict.exit_code
