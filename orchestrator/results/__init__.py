"""What comes back from the node: opened, proven to be what was asked for, written anew, and only then kept.

Nothing of the node's making is kept as it came. Tensors are copied under names that were expected, the
configuration is written here from the run's own knobs, tokenizer and README are never taken. The node's
figures are figures of a stranger: parsed, bounded, and no proof. It does not open seals: the wiring hands in how.
"""
from __future__ import annotations

from .output import check_output, evaluation_of
from .results import Results

__all__ = ["Results", "check_output", "evaluation_of"]
