"""What a check found, for others to read: one JSON document, and one page of HTML made from that document alone."""
from __future__ import annotations

from .document import SCHEMA, Findings, document
from .page import page, write

__all__ = ["SCHEMA", "Findings", "document", "page", "write"]
