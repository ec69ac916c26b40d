"""Results as text for people. Plain lines on stdout; the same facts as `--json`."""
from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ..domain.document import Json
from ..domain.evidence import Check
from ..domain.money import USDC, Money
from ..errors import SealtuneError
from ..results.output import evaluation_of

if TYPE_CHECKING:
    from .shapes import runs as shapes

_shown = False


def show_json(tree: Json) -> None:
    """One object on stdout; decimals of figures are JSON numbers here, money is strings."""
    global _shown
    _shown = True
    print(json.dumps(tree, indent=2, ensure_ascii=False))


def error_of(problem: SealtuneError | None) -> shapes.Problem | None:
    return {"message": str(problem), "hint": problem.hint, "exit_code": problem.exit_code} if problem else None


def show_error(message: str, hint: str | None, exit_code: int) -> None:
    """The object of a command that ended before it had another one to show."""
    if not _shown:
        show_json({"error": {"message": message, "hint": hint, "exit_code": exit_code}})


def show_result(result: shapes.Run, verdict_line: str) -> None:
    """Stage times, money, base beside adapter, wipe and verdict."""
    print(f"run {result['run']}")
    if lasted := [f"{s['name']} {s['seconds']}s" for s in result["stages"] if s["seconds"] > 0]:
        print(f"stages   {'  '.join(lasted)}")
    if result["money"]:
        show_money(result["money"])
    show_figures(result["evaluation"])
    if result["adapter"]:
        show_adapter(Path(result["adapter"]))
    if result["report"]:
        print(f"report   {result['report']}")
    show_owed(result["run"], result["owed"])
    print(f"verdict  {verdict_line}")


def show_owed(run: str, owed: Sequence[str]) -> None:
    """What somebody else holds of ours; keys lie on this laptop and cost nothing."""
    held = [one for one in owed if not one.endswith(("/keys", "/home key"))]
    if held:
        print(f"owed     {', '.join(held)}")
    elif owed:
        print(f"keys     still on this laptop; sealtune resume {run} goes on with them, sealtune end {run} destroys them")


def show_adapter(folder: Path) -> None:
    print(f"adapter  {folder}")
    if (rows := evaluation_of(folder)).is_file():
        print(f"answers  {rows} (evaluation with held-out rows in plain, not to be published)")


def show_money(money: shapes.Money) -> None:
    """Each amount as it stands on the chain; the three parts add up to the deposit."""
    paid, fee, refunded = money["paid"], money["fee"], money["refunded"]
    if paid is None or fee is None or refunded is None:
        print(f"money    deposit {_usdc(money['deposit'])}, not settled yet: what is not used comes back")
        return
    print(f"money    deposit {_usdc(money['deposit'])} = paid {_usdc(paid)} + fee {_usdc(fee)} + refunded {_usdc(refunded)}")


def _usdc(units: str) -> Money:
    return Money(int(units), USDC)


def show_figures(evaluation: shapes.Evaluation) -> None:
    """Each figure that was measured on either side; the other side's may be missing, as the node said."""
    base, adapter = evaluation["base"], evaluation["adapter"]
    figures = (("exact match", base["exact_match"], adapter["exact_match"], "8.1%"),
               ("loss", base["loss"], adapter["loss"], "8.3f"))
    told = [row for row in figures if row[1] is not None or row[2] is not None]
    if told:
        print("                  base   adapter")
    for name, before, after, form in told:
        print(f"{name:12}  {_figure(before, form)}  {_figure(after, form)}")


def _figure(value: float | None, form: str) -> str:
    return f"{'-':>8}" if value is None else format(value, form)


def show_checks(checks: Sequence[Check]) -> None:
    for check in checks:
        print(f"{check.number:3}  {check.word:15} {check.text}{f': {check.why}' if check.why else ''}")
