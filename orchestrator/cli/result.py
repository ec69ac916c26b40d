"""What came of a run, folded from its journal: the object that `--json` prints and render.py shows."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from .. import steps
from ..domain.document import decode
from ..domain.event import Deed, Event, Kind, last, owed
from ..domain.evidence import HardwareReport
from ..domain.lease import Lease, Order
from ..domain.money import Settlement
from ..domain.names import RunId
from ..domain.spool import Adapter, Figures
from ..errors import SealtuneError
from ..sweep import paid_ahead
from .render import error_of

if TYPE_CHECKING:
    from .shapes import runs as shapes

T = TypeVar("T")


def result(run: RunId, home: Path, rows: Sequence[Event], verdict: shapes.Verdict | None,
           problem: SealtuneError | None) -> shapes.Run:
    """Every key, always. Amounts are strings in base units; `paid` goes to the provider, without the fee."""
    scopes = [s for s in dict.fromkeys(e.deed.scope for e in rows) if s.startswith("lease-")]
    adapter = _value(rows, scopes, steps.COLLECT.name, Adapter)
    seen = _value(rows, scopes, steps.INSPECT.name, HardwareReport)
    report = next((home / s / "report.json" for s in reversed(scopes) if (home / s / "report.json").is_file()), None)
    return {
        "run": run,
        "verdict": verdict,
        "evaluation": {"base": _figures(adapter.base if adapter else None),
                       "adapter": _figures(adapter.adapter if adapter else None)},
        "money": money(rows, scopes),
        "stages": stages(rows),
        "owed": [f"{o.scope}/{o.what}" for o in owed(rows)],
        "report": str(report) if report else None,
        "adapter": adapter.folder if adapter else None,
        "simulated": seen.simulated if seen else None,
        "error": error_of(problem),
    }


def money(rows: Sequence[Event], scopes: Sequence[str]) -> shapes.Money | None:
    """All leases of the run together; null without a market. Of a settled run deposit = paid + fee + refunded. While a
    deposit is still in the escrow, what will become of it is null."""
    settled = [s for s in (_of(rows, scope, steps.SETTLE.name, Settlement) for scope in scopes) if s]
    orders = [o for o in (_intent(rows, scope) for scope in scopes) if o]
    if not any(o.rate.per_hour.units or o.deposit.units for o in orders):
        return None
    if len(settled) < len(deposited := [s for s in scopes if _of(rows, s, steps.OPEN.name, Lease)]):
        held = sum(paid.units for paid in (paid_ahead(rows, scope) for scope in deposited) if paid)
        return {"token": orders[0].rate.per_hour.currency.code, "deposit": str(held), "paid": None, "fee": None,
                "refunded": None, "gas_native": None}
    return {
        "token": orders[0].rate.per_hour.currency.code,
        "deposit": str(sum(s.deposit.units for s in settled)),
        "paid": str(sum(s.paid.units for s in settled)),
        "fee": str(sum(s.fee.units for s in settled)),
        "refunded": str(sum(s.refunded.units + s.credited.units for s in settled)),
        "gas_native": str(sum(s.gas.units for s in settled if s.gas)),
    }


def without_gpu(rows: Sequence[Event]) -> bool:
    """The node of the newest training was looked at, and showed no GPU."""
    began = [e.deed.scope for e in rows if e.deed.step == steps.START.name and e.kind is Kind.DONE]
    seen = _of(rows, began[-1], steps.INSPECT.name, HardwareReport) if began else None
    return seen is not None and not seen.gpu


def stages(rows: Sequence[Event]) -> list[shapes.Stage]:
    """Seconds from each step's intent to its outcome; `start` lasts until the results are collected."""
    begun: dict[str, int] = {}
    out: dict[str, int] = {}
    training = None
    for e in rows:
        if e.kind is Kind.INTENDED:
            begun[str(e.deed)] = e.at
            if e.deed.step in ("collect", "stop") and training is not None:
                out["start"] = out.get("start", 0) + e.at - training
                training = None
        elif e.kind is Kind.DONE and str(e.deed) in begun:
            out[e.deed.step] = out.get(e.deed.step, 0) + e.at - begun[str(e.deed)]
            training = e.at if e.deed.step == "start" else training
    return [{"name": name, "seconds": seconds} for name, seconds in out.items()]


def _figures(found: Figures | None) -> shapes.Figures:
    if found is None:
        return {"exact_match": None, "loss": None}
    return {"exact_match": float(found.exact_match) if found.exact_match else None,
            "loss": float(found.loss) if found.loss else None}


def _value(rows: Sequence[Event], scopes: Sequence[str], step: str, kind: type[T]) -> T | None:
    return next((v for v in (_of(rows, s, step, kind) for s in reversed(scopes)) if v), None)


def _of(rows: Sequence[Event], scope: str, step: str, kind: type[T]) -> T | None:
    row = last(rows, Deed(scope, step), Kind.DONE)
    return decode(kind, row.public, row.private) if row else None


def _intent(rows: Sequence[Event], scope: str) -> Order | None:
    row = last(rows, Deed(scope, steps.OPEN.name), Kind.INTENDED)
    return decode(Order, row.public, row.private) if row and row.public else None
