"""A real Chromium without a window, steered over its own protocol, with a wallet put into each page as an extension would.

The wallet's key is in the test's process: the page can only ask, through a binding that Chromium gives it.
"""
from __future__ import annotations

import contextlib
import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

PATIENCE_S = 30
WALLET = """
(() => {
  const waiting = new Map();
  let count = 0;
  window.walletAnswers = (id, result, error) => {
    const [done, failed] = waiting.get(id);
    error ? failed(error) : done(result);
  };
  const provider = { request: (asked) => new Promise((done, failed) => {
    waiting.set(++count, [done, failed]);
    window.walletAsked(JSON.stringify({ id: count, ...asked }));
  }) };
  const detail = Object.freeze({ info: { uuid: "1", name: "Test Wallet <b>", icon: "", rdns: "test" }, provider });
  const announce = () => window.dispatchEvent(new CustomEvent("eip6963:announceProvider", { detail }));
  window.addEventListener("eip6963:requestProvider", announce);
})();
"""


class WalletSays(Exception):
    """An EIP-1193 error: (code, text)."""


class Page:
    """One tab. `wallet(method, params)` answers what pages ask of it."""

    def __init__(self, socket: ClientConnection, wallet: Callable[[str, Any], Any]) -> None:
        self._socket, self._wallet, self._count = socket, wallet, 0
        for name, values in (("Page.enable", {}), ("Runtime.enable", {}), ("Runtime.addBinding", {"name": "walletAsked"}),
                             ("Page.addScriptToEvaluateOnNewDocument", {"source": WALLET})):
            self.call(name, **values)

    def go(self, url: str) -> None:
        self.call("Page.navigate", url=url)
        self.until("document.readyState === 'complete'")

    def call(self, method: str, **values: Any) -> Any:
        self._count += 1
        own = self._count
        self._socket.send(json.dumps({"id": own, "method": method, "params": values}))
        while True:
            found = json.loads(self._socket.recv(timeout=PATIENCE_S))
            if found.get("id") == own:
                return found.get("result", found.get("error"))
            self._heard(found)

    def run(self, script: str) -> Any:
        """The script's value; an exception in the page as its text."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=False, returnByValue=True)
        if "exceptionDetails" in found:
            return str(found["exceptionDetails"]["exception"].get("description"))
        return found["result"].get("value")

    def until(self, condition: str) -> None:
        deadline = time.monotonic() + PATIENCE_S
        while self.run(f"!!({condition})") is not True:
            assert time.monotonic() < deadline, f"{condition}\n{self.run('document.body.innerText')}"
            time.sleep(0.05)

    def fetches(self, url: str, options: str = "{}") -> str:
        """What becomes of a fetch in this page: its status, or the error's name."""
        self.run(f"window.came = ''; fetch({json.dumps(url)}, {options})"
                 ".then(r => window.came = r.type + ' ' + r.status, e => window.came = e.name); 1")
        self.until("window.came")
        return str(self.run("window.came"))

    def _heard(self, event: Any) -> None:
        if event.get("method") != "Runtime.bindingCalled":
            return
        asked = json.loads(event["params"]["payload"])
        try:
            answer = f"{json.dumps(self._wallet(asked['method'], asked.get('params', [])))}, null"
        except WalletSays as no:
            answer = f"null, {{code: {no.args[0]}, message: {json.dumps(no.args[1])}}}"
        self._count += 1
        self._socket.send(json.dumps({"id": self._count, "method": "Runtime.evaluate",
                                      "params": {"expression": f"walletAnswers({asked['id']}, {answer})"}}))


def program() -> str | None:
    return shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")


@contextlib.contextmanager
def chromium(folder: Path, wallet: Callable[[str, Any], Any]) -> Iterator[Page]:
    found = program()
    assert found, "no Chromium here: sudo apt install chromium"
    root = ["--no-sandbox"] if os.geteuid() == 0 else []     # as root it does not start otherwise
    with (folder / "chromium.log").open("wb") as log:
        process = subprocess.Popen(
            [found, "--headless=new", *root, "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run",
             "--no-proxy-server", "--host-resolver-rules=MAP evil.test 127.0.0.1", f"--user-data-dir={folder / 'profile'}",
             "--remote-debugging-port=0", "about:blank"], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    try:
        with connect(_tab(process, folder / "profile" / "DevToolsActivePort"), proxy=None, max_size=None) as socket:
            yield Page(socket, wallet)
    finally:
        process.terminate()
        process.wait(20)


def _tab(process: subprocess.Popen[bytes], file: Path) -> str:
    deadline = time.monotonic() + PATIENCE_S
    while not (file.is_file() and file.read_text().count("\n")):
        assert process.poll() is None and time.monotonic() < deadline, "Chromium does not start"
        time.sleep(0.05)
    with urllib.request.urlopen(f"http://127.0.0.1:{file.read_text().splitlines()[0]}/json/list", timeout=10) as answer:
        return str(next(t for t in json.load(answer) if t["type"] == "page")["webSocketDebuggerUrl"])
