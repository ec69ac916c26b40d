"""The record channel: one JSON object a line, numbers and fixed words only, on a descriptor of its own.

Whatever a library prints goes to standard error, which the keeper throws away; it can not corrupt a record.
No text of an exception, no row, no path of the node ever passes here.
"""
from __future__ import annotations

import json
import math
import os
import sys
from pathlib import Path
from types import TracebackType

LINE_MAX = 4096
RESERVED = 64                       # lines that the steps leave for phases, checkpoints, result and error
OURS = str(Path(__file__).parent)


class Records:
    """Writes records to `fd`, at most `limit` lines; a full book still takes all but step records."""

    def __init__(self, fd: int, limit: int = 1_000_000) -> None:
        self._fd = fd
        self._lines = 0
        self._phase = "checking"
        self.limit = limit

    def emit(self, kind: str, **data: str) -> None:
        line = json.dumps({"kind": kind, "data": data}, sort_keys=True, separators=(",", ":")).encode() + b"\n"
        if len(line) > LINE_MAX or (kind == "step" and self._lines >= self.limit - RESERVED):
            return
        self._lines += 1
        while line:
            line = line[os.write(self._fd, line):]

    def phase(self, name: str) -> None:
        self._phase = name
        self.emit("phase", phase=name)

    def step(self, step: int, of: int, loss: float, lr: float, grad_norm: float,
             tok: int, tok_s: float, mem_mib: int, epoch: float) -> None:
        self.emit("step", step=str(step), of=str(of), loss=decimal(loss), lr=decimal(lr),
                  grad_norm=decimal(grad_norm), tok=str(tok), tok_s=f"{tok_s:.1f}", mem_mib=str(mem_mib),
                  epoch=f"{epoch:.3f}")

    def error(self, error: BaseException) -> None:
        self.emit("error", type=type(error).__name__[:64], where=where(error.__traceback__), phase=self._phase)

    def every(self, steps: int) -> int:
        """How many steps one step record stands for, so that the book does not fill up."""
        return max(1, math.ceil(steps / max(1, self.limit - RESERVED)))


def open_channel() -> Records:
    """Keeps standard output for records and gives everyone else standard error instead."""
    channel = os.dup(1)
    os.dup2(2, 1)
    sys.excepthook = _say_nothing
    return Records(channel)


def decimal(value: float) -> str:
    """Nine digits: enough to tell two different float32 apart."""
    return f"{value:.9g}"


def where(trace: TracebackType | None) -> str:
    """The innermost place in our own code, as file:line."""
    place = ""
    while trace is not None:
        file = trace.tb_frame.f_code.co_filename
        if file.startswith(OURS):
            place = f"{Path(file).name}:{trace.tb_lineno}"
        trace = trace.tb_next
    return place


def _say_nothing(kind: type[BaseException], value: BaseException, trace: TracebackType | None) -> None:
    """A traceback quotes values; the error record has been written by then."""
