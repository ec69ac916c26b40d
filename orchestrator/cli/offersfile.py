"""Offers in a file, so that a plan can be made without a market: written by `plan --save`, read by `plan --offers`."""
from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ..domain.document import canonical, decode, encode, parse
from ..domain.lease import Offer
from ..errors import BadInput

SCHEMA = "sealtune/offers/1"
MOST = 16 * 2**20


def save_offers(path: Path, offers: Sequence[Offer]) -> None:
    """BadInput where the file cannot be written."""
    tree = {"schema": SCHEMA, "offers": [encode(offer)[0] for offer in offers]}
    try:
        path.write_bytes(canonical(tree) + b"\n")
    except OSError as problem:
        raise BadInput(f"{path}: {(problem.strerror or 'cannot be written').lower()}", hint="name another file") from problem


def read_offers(path: Path) -> list[Offer]:
    """BadInput for a file that is none of ours."""
    try:
        with path.open("rb") as file:
            tree = parse(file.read(MOST), values=1_000_000)
        if tree["schema"] != SCHEMA:
            raise ValueError("another schema")
        return [decode(Offer, one) for one in tree["offers"]]
    except OSError as problem:
        raise BadInput(f"{path}: {(problem.strerror or 'cannot be read').lower()}", hint="check --offers") from problem
    except (ValueError, TypeError, KeyError, AttributeError):
        raise BadInput(f"{path.name} holds no offers", hint="sealtune plan RUNFILE --save FILE writes such a file") from None
