"""The commands by name, and the one place where an error becomes a message and an exit code."""
from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import typer

from ..domain.text import plain
from ..errors import SealtuneError
from . import advise, audit, data, demo, end, escrow, init, lab, logs, plan, rentals, resume, run, status, wallet

app = typer.Typer(
    name="sealtune", no_args_is_help=True, add_completion=False, rich_markup_mode=None, pretty_exceptions_enable=False,
    pretty_exceptions_show_locals=False, help="Fine-tune a language model on private data, on a rented GPU.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
COMMANDS: tuple[tuple[str, Callable[..., Any]], ...] = (
    ("advise", advise.advise), ("init", init.init), ("plan", plan.plan), ("run", run.run), ("demo", demo.demo),
    ("status", status.status), ("logs", logs.logs), ("rentals", rentals.rentals), ("end", end.end),
    ("resume", resume.resume), ("audit", audit.audit),
)
for name, command in COMMANDS:
    app.command(name)(command)
app.add_typer(data.app, name="data")
app.add_typer(wallet.app, name="wallet")
app.add_typer(escrow.app, name="escrow")
app.add_typer(lab.app, name="lab")


@app.callback(invoke_without_command=True)
def root(version: bool = typer.Option(False, "--version", help="Print the version and stop.")) -> None:
    """Fine-tune a language model on private data, on a rented GPU."""
    if version:
        from .. import __version__

        typer.echo(f"sealtune {__version__}")
        raise typer.Exit()


def main() -> int:
    """Exit codes: see errors.py. An interrupt that nobody handled is 130."""
    try:
        code = app(standalone_mode=False)    # a raised Exit comes back as its number
    except SealtuneError as problem:
        say(problem)
        tell(str(problem), problem.hint, problem.exit_code)
        return problem.exit_code
    except typer.Exit as done:
        return done.exit_code
    except (typer.Abort, KeyboardInterrupt):
        print("sealtune: interrupted; what is still open: sealtune rentals", file=sys.stderr)
        tell("interrupted", "sealtune rentals", 130)
        return 130
    except Exception as problem:         # why: click's usage errors have no common public name across its forks
        show, number = getattr(problem, "show", None), getattr(problem, "exit_code", None)
        if show is None or number is None:
            raise
        show()
        tell(getattr(problem, "message", "") or str(problem), "sealtune --help", int(number))
        return int(number)
    return int(code or 0)


def tell(message: str, hint: str | None, exit_code: int) -> None:
    """With --json whoever reads stdout gets one object, whatever happened."""
    if "--json" in sys.argv:
        from .render import show_error

        show_error(message, hint, exit_code)


def say(problem: SealtuneError) -> None:
    """One line, lower case, no full stop, and the next command."""
    print(f"sealtune: {plain(problem)}", file=sys.stderr)
    if problem.hint:
        print(f"hint: {plain(problem.hint)}", file=sys.stderr)
