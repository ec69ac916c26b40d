"""YAML 1.2 to plain values that remember where they stood. Nothing is constructed but text, numbers, lists, maps.

Decimals become `Decimal`, never float, and their written text is kept beside them. Anchors, aliases, tags and
duplicate keys are refused: a run file is a short page that one person can read.
"""
from __future__ import annotations

from dataclasses import dataclass, field
from decimal import Decimal, InvalidOperation
from pathlib import Path
from typing import Any

from ..errors import BadInput

MOST_BYTES = 256 * 1024
MOST_DEPTH = 8
HINT = "look at the indentation, quotes and brackets of that line and of the one before"
TAG = "tag:yaml.org,2002:"
Place = tuple[str | int, ...]            # ("training", "lora_r")


@dataclass(slots=True)
class Page:
    """A YAML file: `tree` of values, and for every place in it the line (from 1) and the written scalar."""

    path: Path
    tree: dict[str, Any] = field(default_factory=dict)
    lines: dict[Place, int] = field(default_factory=dict)
    texts: dict[Place, str] = field(default_factory=dict)

    def error(self, place: Place, message: str, hint: str | None = None) -> BadInput:
        """A BadInput that names the file, the line and the field; the next step is there, if no better one is given."""
        known = place
        while known and known not in self.lines:
            known = known[:-1]
        name, line = ".".join(str(p) for p in place), self.lines.get(known, 1)
        return BadInput(f"{self.path.name}:{line}: {name + ': ' if name else ''}{message}",
                        hint or f"correct line {line} of {self.path}")


def read_page(path: Path) -> Page:
    """The page at `path`; an empty file is an empty mapping. BadInput for everything that is not a plain page."""
    page = Page(path)
    root = _compose(_text(path), page)
    if root is None:
        return page
    tree = _value(root, (), page, set())
    if not isinstance(tree, dict):
        raise page.error((), "fields are needed, one `name: value` a line")
    page.tree = tree
    return page


def _text(path: Path) -> str:
    try:
        with path.open("rb") as file:
            data = file.read(MOST_BYTES + 1)
    except OSError as problem:
        raise BadInput(f"{path}: {(problem.strerror or 'cannot be read').lower()}", hint="check the path") from problem
    if len(data) > MOST_BYTES:
        raise BadInput(f"{path.name}: larger than {MOST_BYTES // 1024} KiB, this is not a run file")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as problem:
        raise BadInput(f"{path.name}: not UTF-8 at byte {problem.start}") from problem


def _compose(text: str, page: Page) -> Any:
    from ruamel.yaml import YAML
    from ruamel.yaml.error import MarkedYAMLError, YAMLError
    try:
        return YAML(typ="safe", pure=True).compose(text)
    except MarkedYAMLError as problem:
        mark = problem.problem_mark or problem.context_mark
        page.lines[()] = mark.line + 1 if mark else 1
        words = " ".join(str(problem.problem or problem.context or "cannot be read").split())
        raise page.error((), f"not valid YAML: {words[:120]}", HINT) from problem
    except (YAMLError, ValueError, RecursionError) as problem:
        raise page.error((), "not valid YAML", HINT) from problem


def _value(node: Any, place: Place, page: Page, seen: set[int]) -> Any:
    from ruamel.yaml.nodes import MappingNode, SequenceNode
    page.lines.setdefault(place, node.start_mark.line + 1)
    if id(node) in seen:
        raise page.error(place, "aliases (*name) are not used here, write the value again")
    seen.add(id(node))
    if len(place) > MOST_DEPTH:
        raise page.error(place, "nested too deep")
    if isinstance(node, MappingNode):
        return _mapping(node, place, page, seen)
    if isinstance(node, SequenceNode):
        return [_value(item, (*place, n), page, seen) for n, item in enumerate(node.value)]
    page.texts[place] = str(node.value)
    return _scalar(node, place, page)


def _mapping(node: Any, place: Place, page: Page, seen: set[int]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in node.value:
        name = key.value if isinstance(key.value, str) else None
        if name is None or str(key.tag) == f"{TAG}merge":
            raise page.error(place, f"line {key.start_mark.line + 1} has no plain field name")
        page.lines[*place, name] = key.start_mark.line + 1
        if name in found:
            raise page.error((*place, name), "written twice")
        found[name] = _value(value, (*place, name), page, seen)
    return found


def _scalar(node: Any, place: Place, page: Page) -> Any:
    kind, text = str(node.tag).removeprefix(TAG), str(node.value)
    if kind == "str":
        return text
    if kind == "null":
        return None
    if kind == "bool":
        return text.lower() == "true"
    try:
        if kind == "int":
            return _whole(text.replace("_", ""))
        if kind == "float":
            return _decimal(text.replace("_", ""))
    except (ValueError, InvalidOperation):
        raise page.error(place, f"not a number: {text[:40]!r}") from None
    raise page.error(place, f"a plain value is needed, not one of kind {kind[:40]!r}")


def _whole(text: str) -> int:
    plain = text.lstrip("+-")
    return int(text, 0) if plain[:2] in ("0x", "0o", "0b") else int(text)


def _decimal(text: str) -> Decimal:
    number = Decimal(text)
    if not number.is_finite():
        raise ValueError(text)
    return number
