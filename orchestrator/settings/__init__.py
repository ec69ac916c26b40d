"""What the user wrote: the run file and the settings, read and checked once, at the edge.

Here text becomes values: money becomes integers, hours become seconds, paths become absolute. It must not
look at the world (no network, no dataset, no wallet) and it keeps no float: a decimal keeps its written text.
pydantic and ruamel.yaml stay inside this package and are imported when a file is read, not before.
"""
from __future__ import annotations

from .places import state_dir
from .read import load_run, load_settings
from .values import OpenMarket, Policy, RunFile, Settings, SshHost

__all__ = ["OpenMarket", "Policy", "RunFile", "Settings", "SshHost", "load_run", "load_settings", "state_dir"]
