"""`sealtune data …`: what can be known about a dataset on this laptop, before anything is paid."""
from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from .options import JSON

if TYPE_CHECKING:
    from ..dataset.report import Findings
    from ..dataset.tokens import Counter

app = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Look at a dataset before anything is paid.")
RUN_FILES = (".yaml", ".yml")
SPOKEN = 6                               # findings of a kind that are told on the terminal


@app.command("check")
def check(
    file: Path = typer.Argument(..., metavar="DATASET", help="A dataset, or a run file that names one."),
    format: str = typer.Option("auto", "--format", help="As in a run file; auto looks at the first rows."),
    model: str = typer.Option("", "--model", help="Whose tokens are counted: a folder or a hub id, where it is at hand."),
    max_length: int = typer.Option(0, "--max-length", min=0, help="Tokens of a row; what is longer is cut."),
    test: Path | None = typer.Option(None, "--test", metavar="FILE", help="A test file: which of its rows are in DATASET?"),
    report: Path | None = typer.Option(None, "--report", metavar="FILE", help="Write a page with plots (HTML)."),
    no_rows: bool = typer.Option(False, "--no-rows", help="Show nothing of what rows say."), json: bool = JSON,
) -> None:
    """Say what is wrong with a dataset, line by line, and what deserves a look.

    Exit 2 when it cannot be trained on.
    """
    from ..dataset.report import document, page
    from .desk import note
    from .render import show_json

    path, format, model, max_length = _meant(file, format, model, max_length)
    found = _found(path, format, _counter(model, max_length), test)
    tree = document(found, plain=no_rows)
    if report:
        _write(report, page(tree))
        note(f"report {report}" + ("" if no_rows else " (rows in plain, not to be handed on)"))
    show_json(tree) if json else _tell(tree)
    raise typer.Exit(2 if tree["verdict"] == "faulty" else 0)


def _meant(file: Path, format: str, model: str, max_length: int) -> tuple[Path, str, str, int]:
    """A run file answers for the dataset, and for what the command line leaves open."""
    if file.suffix.lower() not in RUN_FILES:
        return file, format, model, max_length
    from ..settings.read import load_run

    run = load_run(file)
    return (run.dataset, run.format if format == "auto" else format, model or run.model,
            max_length or int(dict(run.knobs).get("max_length", 0)))


def _counter(model: str, max_length: int) -> Counter:
    from ..dataset.tokens import Counter
    from ..settings.places import state_dir

    return Counter(model, max_length or None, (state_dir() / "lab" / "hub",))


def _found(path: Path, format: str, counter: Counter, test: Path | None) -> Findings:
    from ..dataset.check import check, count_tokens
    from ..dataset.formats import FORMATS
    from ..dataset.leakage import look
    from ..dataset.report import Findings
    from ..errors import BadInput
    from .desk import note

    if format not in ("auto", *FORMATS):
        raise BadInput(f"--format {format!r} is not known", hint=f"one of auto, {', '.join(FORMATS)}")
    checked = check(path, format, lambda rows: note(f"  {rows:,} rows read"))
    if checked.tally.faults:
        return Findings(checked, counter.found)
    tokens, leak = count_tokens(checked, counter), None
    if test:
        other = check(test, checked.structure.format)
        if other.tally.faults:
            raise BadInput(str(other.tally.faults[0]), hint=f"sealtune data check {test}")
        leak = look(checked, other)
    return Findings(checked, tokens, leak, counter.previews(checked.content.preview))


def _write(path: Path, text: str) -> None:
    from ..dataset.report import write
    from ..errors import BadInput

    try:
        write(path, text)
    except OSError as problem:
        raise BadInput(f"--report {path}: {(problem.strerror or 'cannot be written').lower()}") from problem


def _tell(tree: dict[str, Any]) -> None:
    from ..domain.text import plain

    looked, split, tokens = tree["looked_into"], tree["split"], tree["tokens"]
    typer.echo(f"{plain(tree['file'])}: {tree['rows']} rows of {tree['format']}")
    told: dict[str, int] = {}
    for one in tree["findings"]:
        told[one["code"]] = told.get(one["code"], 0) + 1
        if told[one["code"]] <= SPOKEN:
            place = ":".join([one["file"], *[str(n) for n in (one["line"], one["column"]) if n]])
            typer.echo(f"{one['weight']:6} {plain(place)}: {one['what']}")
            typer.echo(f"       {one['mend']}") if one["mend"] and told[one["code"]] == 1 else None
    for code, count in tree["counts"].items():
        if count > SPOKEN:
            typer.echo(f"       {code}: {count} in all" + ("" if count <= told[code] else "; --json and --report show more"))
    if split:
        typer.echo(f"split  {split['train']} to train on, {split['held_out']} held out"
                   + (", each class has its share" if split["stratified"] else ""))
        if not looked["all"]:
            typer.echo(f"sample likeness, languages and classes were looked at in {looked['rows']} of {looked['of']} rows")
        typer.echo("tokens " + (f"not counted: {tokens['why']}" if tokens["why"] else
                                f"{tokens['all']} in {tokens['rows']} rows, {tokens['cut']} rows are cut at "
                                f"{tokens['max_length']}, {tokens['lost']} lose their answer"))
    for row in tree["preview"] or []:
        typer.echo("row    " + "\n       ".join(plain(line) for line in row.splitlines()[:12]))
    typer.echo(f"verdict {tree['verdict']}")
