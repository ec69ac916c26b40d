"""The page that asks the wallet in the person's browser: opened where there is a desktop, and always named."""
from __future__ import annotations

import os
import sys

from .desk import note


def show_page(url: str) -> None:
    import webbrowser

    note(f"open this page in the browser that has your wallet: {url}")
    if sys.platform == "darwin" or any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY", "BROWSER")):
        webbrowser.open(url)             # a browser inside a terminal is left alone: it has no wallet
