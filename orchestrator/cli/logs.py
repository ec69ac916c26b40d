"""`sealtune logs [-f] RUN`: the training records that are at home, one line each."""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import typer

from .options import JSON

FOLLOW = typer.Option(False, "--follow", "-f", help="Go on until the run is no longer watched.")


def logs(run: str = typer.Argument(..., help="The run's name."), follow: bool = FOLLOW, json: bool = JSON) -> None:
    """Show the training's records."""
    from .. import wiring
    from ..domain.names import RunId
    from ..errors import NoSuchRun
    from .desk import Desk

    settings = Desk.open().settings
    book, name = wiring.journals(settings), RunId(run)
    if name not in book.runs():
        raise NoSuchRun(f"no run {run!r} here", hint="sealtune status")
    for line in lines(wiring.home_of(settings, name), lambda: follow and book.in_use(name)):
        typer.echo(line if json else shown(line))


def lines(home: Path, more: Callable[[], bool]) -> Iterator[str]:
    """Every whole record line of every lease, oldest lease first."""
    read: dict[Path, int] = {}
    while True:
        going_on = more()                # asked before reading, so that nothing written meanwhile is missed
        for file in sorted(home.glob("lease-*/records.jsonl"), key=lambda f: int(f.parent.name.split("-")[1])):
            with file.open("rb") as handle:
                handle.seek(read.get(file, 0))
                text = handle.read()
            whole = text[:text.rfind(b"\n") + 1]
            read[file] = read.get(file, 0) + len(whole)
            yield from whole.decode(errors="replace").splitlines()
        if not going_on:
            return
        time.sleep(0.5)


def shown(line: str) -> str:
    import json

    record: dict[str, Any] = json.loads(line)
    data = "  ".join(f"{name} {value}" for name, value in record.get("data", {}).items())
    return f"{time.strftime('%H:%M:%S', time.localtime(record.get('at', 0)))}  {record.get('kind', ''):10} {data}"
