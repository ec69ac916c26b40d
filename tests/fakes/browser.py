"""A person with a wallet in a browser, without the browser: opens the page, signs what it is asked, answers.

    python -m tests.fakes.browser KEYFILE URL [no]       for $BROWSER; "no": declines

test_bridge_chromium.py does the same in a real one.
"""
from __future__ import annotations

import json
import sys
import threading
import urllib.parse
import urllib.request
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from eth_account import Account
from eth_account.messages import encode_typed_data

from orchestrator.chain.wallet import Wallet, load_key

_NO_PROXY = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def fetch(url: str, body: Any = None, **headers: str) -> bytes:
    request = urllib.request.Request(url, json.dumps(body).encode() if body is not None else None, headers)
    with _NO_PROXY.open(request, timeout=10) as answer:
        return bytes(answer.read())


def answer_to(question: Mapping[str, Any], who: Wallet) -> dict[str, Any]:
    signatures = [who.sign_message(encode_typed_data(full_message=one["typed"])) for one in question["documents"]]
    return {"account": who.address.lower(), "signatures": signatures}


def visit(url: str, who: Wallet, **changes: Any) -> None:
    """`changes`: what is put into the answer instead."""
    token = urllib.parse.urlsplit(url).path.strip("/")
    assert b"sealtune asks your wallet" in fetch(url)
    question = json.loads(fetch(url + "ask", **{"Sealtune-Token": token}))
    host = f"http://{urllib.parse.urlsplit(url).netloc}"
    fetch(url + "answer", {**answer_to(question, who), **changes},
          **{"Sealtune-Token": token, "Origin": host, "Content-Type": "application/json"})


class Person:
    """`show` for the bridge: visits the page a moment later, from another thread."""

    def __init__(self, who: Wallet, **changes: Any) -> None:
        self._who, self._changes, self.pages = who, changes, list[str]()

    def __call__(self, url: str) -> None:
        self.pages.append(url)
        threading.Thread(target=visit, args=(url, self._who), kwargs=self._changes, daemon=True).start()


def somebody() -> Wallet:
    return Wallet(bytes(Account.create().key))


if __name__ == "__main__":
    visit(sys.argv[2], load_key(Path(sys.argv[1])), **({"refused": "no"} if sys.argv[3:] else {}))
