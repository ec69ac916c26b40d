"""The model hub as it answers over HTTP: which commit a name means today, and the digest of every file needed.

Read only. It takes weights in safetensors and the files that describe them, never code; what would need code of
the model's own is refused before anything is rented. Weights are not downloaded here: the node fetches them.
"""
from __future__ import annotations

from .client import HubClient

__all__ = ["HubClient"]
