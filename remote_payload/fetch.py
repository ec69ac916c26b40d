"""The base model, from its hub to the node, by commit. Public files only, each checked by its digest.

Runs inside the environment as a child of the agent: `payload.zip fetch`, the request as one JSON object on standard
input, one JSON object a line on standard output: {"done", "of"} while it works, last {"bytes"} or {"error"}. It sends
no token and no telemetry, and leaves no link and no cache behind. Where the environment has no huggingface_hub (the
rehearsal) it takes the files over plain HTTP.
"""
from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
import shutil
import sys
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

NAME = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*){0,4}")
REPO = re.compile(r"[A-Za-z0-9_-][A-Za-z0-9._-]*(/[A-Za-z0-9_-][A-Za-z0-9._-]*)?")
HEX = re.compile(r"[0-9a-f]{64}")
BLOCK = 1 << 20
TIMEOUT = 60


class WrongDigest(Exception):
    """A file is not what the laptop's table says."""


def main(argv: list[str]) -> int:
    """0 when every file of the table lies in `into`, checked; 1 otherwise, with the error's type as the last line."""
    channel = os.dup(1)
    os.dup2(2, 1)
    try:
        request = json.loads(sys.stdin.buffer.read(1 << 20))
        size = fetch(request["base"], Path(request["into"]), Path(request["cache"]), channel)
    except Exception as error:  # noqa: BLE001  why: a hub's error quotes addresses; only its type leaves the node
        _say(channel, {"error": type(error).__name__[:64]})
        return 1
    _say(channel, {"bytes": size})
    return 0


def fetch(base: dict[str, Any], into: Path, cache: Path, channel: int) -> int:
    """Bytes of all files. Files that lie in `into` with the right digest are not fetched again."""
    into.mkdir(mode=0o700, exist_ok=True)
    get, total = _getter(base, into, cache), 0
    try:
        for number, (name, digest) in enumerate(base["files"]):
            _say(channel, {"done": number, "of": len(base["files"])})
            path = into / name
            if not (path.is_file() and not path.is_symlink() and sha256(path) == digest):
                path = get(name)
                if path.is_symlink() or sha256(path) != digest:
                    raise WrongDigest
            total += path.stat().st_size
    finally:
        for folder in (cache, into / ".cache"):
            shutil.rmtree(folder, ignore_errors=True)
    return total


def sound(base: Any) -> bool:
    """Is this a table that may be fetched? Asked by the agent before anything is started."""
    if not isinstance(base, dict) or not isinstance(base.get("files"), list):
        return False
    endpoint, repo, commit = base.get("endpoint"), base.get("repo"), base.get("commit")
    words = all(isinstance(word, str) for word in (endpoint, repo, commit))
    return bool(words and re.fullmatch(r"https?://[A-Za-z0-9.:_/\[\]-]{1,200}", str(endpoint))
                and REPO.fullmatch(str(repo)) and re.fullmatch(r"[0-9a-f]{8,64}", str(commit))
                and base["files"] and all(_row(row) for row in base["files"]))


def _row(row: Any) -> bool:
    return (isinstance(row, list) and len(row) == 2 and all(isinstance(word, str) for word in row)
            and len(row[0]) <= 200 and bool(NAME.fullmatch(row[0])) and bool(HEX.fullmatch(row[1])))


def table_digest(files: list[list[str]]) -> str:
    """The base model's name in evidence: the digest of its sorted file table."""
    text = json.dumps(sorted(files), separators=(",", ":"), ensure_ascii=False)
    return "sha256:" + hashlib.sha256(text.encode()).hexdigest()


def _getter(base: dict[str, Any], into: Path, cache: Path) -> Callable[[str], Path]:
    """From a name of the table to a regular file under `into`."""
    quiet = {"HF_ENDPOINT": base["endpoint"], "HF_HOME": str(cache), "HF_HUB_DISABLE_TELEMETRY": "1",
             "HF_HUB_DISABLE_PROGRESS_BARS": "1", "HF_HUB_DISABLE_IMPLICIT_TOKEN": "1", "DO_NOT_TRACK": "1",
             "HF_XET_CACHE": str(cache / "xet"), "HF_HUB_DISABLE_UPDATE_CHECK": "1"}
    os.environ.update(quiet)
    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN", "HF_HUB_OFFLINE"):
        os.environ.pop(name, None)
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        return _plain_getter(base, into)

    def get(name: str) -> Path:
        return Path(hf_hub_download(base["repo"], name, revision=base["commit"], local_dir=into, token=False,
                                    endpoint=base["endpoint"]))
    return get


def _plain_getter(base: dict[str, Any], into: Path) -> Callable[[str], Path]:
    def get(name: str) -> Path:
        address = "/".join((base["endpoint"].rstrip("/"), base["repo"], "resolve", base["commit"],
                            urllib.parse.quote(name)))
        path = into / name
        path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        part = path.with_name(path.name + ".part")
        with contextlib.closing(urllib.request.urlopen(address, timeout=TIMEOUT)) as answer:  # noqa: S310  checked: http(s)
            with part.open("wb") as file:
                shutil.copyfileobj(answer, file, BLOCK)
                file.flush()
                os.fsync(file.fileno())
        return part.replace(path)
    return get


def sha256(path: Path) -> str:
    seen = hashlib.sha256()
    with path.open("rb") as file:
        for block in iter(lambda: file.read(BLOCK), b""):
            seen.update(block)
    return seen.hexdigest()


def _say(channel: int, words: dict[str, Any]) -> None:
    os.write(channel, json.dumps(words).encode() + b"\n")
