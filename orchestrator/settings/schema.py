"""The run file as a JSON Schema, for editors: made from the models that read it, so that both say the same.

A rehearsal's own knobs are not in it, and a field that is not used is left out, not null.
"""
from __future__ import annotations

from typing import Any

from ..domain.document import Json

DIALECT = "https://json-schema.org/draft/2020-12/schema"
NAME = "sealtune.schema.json"            # what the first line of a run file names
SHOWN = ("string", "boolean", "integer")                # kinds whose default an editor can show


def run_schema() -> dict[str, Json]:
    from .models import Run

    found: dict[str, Any] = _slim(Run.model_json_schema())
    return {"$schema": DIALECT, "title": "sealtune run file", **found}


def _slim(tree: Any) -> Any:
    """Without titles that repeat names, defaults of groups, and nulls."""
    if isinstance(tree, list):
        return [_slim(one) for one in tree]
    if not isinstance(tree, dict):
        return tree
    found = {name: _slim(value) for name, value in tree.items() if not (name == "title" and isinstance(value, str))}
    kinds = found.get("anyOf")
    if isinstance(kinds, list) and {"type": "null"} in kinds:
        left = [one for one in kinds if one != {"type": "null"}]
        del found["anyOf"]
        found = {**(left[0] if len(left) == 1 else {"anyOf": left}), **found}
    if "default" in found and (found["default"] is None or found.get("type") not in SHOWN):
        del found["default"]
    return found
