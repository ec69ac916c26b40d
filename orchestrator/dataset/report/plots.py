"""Bars as inline SVG. All text is escaped; no script, no style and no address in it."""
from __future__ import annotations

from collections.abc import Sequence
from html import escape

WIDTH, LABEL, ROW = 640, 200, 22


def bars(title: str, pairs: Sequence[tuple[str, int]]) -> str:
    """One bar a pair (what, how many). "" without pairs."""
    if not pairs:
        return ""
    most = max(count for _, count in pairs) or 1
    room = WIDTH - LABEL - 80
    drawn = "".join(_bar(n, what, count, max(1, count * room // most)) for n, (what, count) in enumerate(pairs))
    height = ROW * len(pairs) + 4
    return (f'<figure><figcaption>{escape(title)}</figcaption><svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" '
            f'height="{height}" role="img" aria-label="{escape(title)}">{drawn}</svg></figure>')


def _bar(place: int, what: str, count: int, width: int) -> str:
    top = place * ROW
    return (f'<text x="{LABEL - 8}" y="{top + 15}" text-anchor="end">{escape(shortened(what))}</text>'
            f'<rect x="{LABEL}" y="{top + 3}" width="{width}" height="{ROW - 6}" fill="#3f6f8f"/>'
            f'<text x="{LABEL + width + 6}" y="{top + 15}">{count}</text>')


def shortened(text: str, most: int = 26) -> str:
    return text if len(text) <= most else text[:most - 1] + "…"
