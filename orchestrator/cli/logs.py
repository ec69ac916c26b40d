"""`sealtune logs [-f] RUN`: the training records that are at home, one line each.

The files hold the node's own bytes. Nothing of them is printed but what domain/progress.py read out of them.
"""
from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .options import JSON

if TYPE_CHECKING:
    from ..domain.progress import Record

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
    for record in records(wiring.home_of(settings, name), lambda: follow and book.in_use(name)):
        typer.echo(as_json(record) if json else shown(record))


def records(home: Path, more: Callable[[], bool]) -> Iterator[Record]:
    """Every whole record of every lease, oldest lease first. What is no record is passed over."""
    from ..domain.progress import BadRecords, read_record

    for line in lines(home, more):
        try:
            yield read_record(line)
        except BadRecords:               # nothing of ours wrote it: the copy holds checked lines only
            continue


def lines(home: Path, more: Callable[[], bool]) -> Iterator[bytes]:
    read: dict[Path, int] = {}
    while True:
        going_on = more()                # asked before reading, so that nothing written meanwhile is missed
        for file in sorted(home.glob("lease-*/records.jsonl"), key=lambda f: int(f.parent.name.split("-")[1])):
            with file.open("rb") as handle:
                handle.seek(read.get(file, 0))
                *whole, _ = handle.read().split(b"\n")
            read[file] = read.get(file, 0) + sum(len(line) + 1 for line in whole)
            yield from whole
        if not going_on:
            return
        time.sleep(0.5)


def as_json(record: Record) -> str:
    """One line of JSON in its one spelling; a kind of a later version is "other"."""
    from ..domain.document import canonical

    return canonical({"seq": record.seq, "at": record.at, "kind": record.kind.value, "data": dict(record.data)}).decode()


def shown(record: Record) -> str:
    data = "  ".join(str(value) if name == record.kind.value else f"{name} {value}" for name, value in record.data)
    return f"{time.strftime('%H:%M:%S', time.localtime(record.at))}  {record.kind.value:10} {data}"
