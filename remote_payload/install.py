"""The environment of the job: exactly the wheels of the lock, by hash, in a folder that a later lease may use again.

uv makes it where uv is or can be had; Python's own venv and pip do where it is not. It is built beside its place and
renamed when complete. Caches lie in the workspace and go. Installers talk to nobody: of what they print the last few
lines are told, made harmless, as the reason why it did not work.
"""
from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from remote_payload import public, reasons
from remote_payload.child import die_with_parent
from remote_payload.frames import Refused, canonical
from remote_payload.overwrite import entries, remove_public
from remote_payload.public import site_packages
from remote_payload.workspace import (
    Tell,
    Workspace,
    alone,
    bare,
    digest_bytes,
    digest_file,
    plain,
    read_json,
    write_atomic,
)

SECONDS = 1800
NEEDED = (3, 11)
PASSED_ON = ("PATH", "HOME", "LANG", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY",
             "NO_PROXY", "http_proxy", "https_proxy", "no_proxy", "ALL_PROXY")
STRICT = ("--require-hashes", "--only-binary", ":all:")


def install(place: Workspace, header: dict[str, Any], body: bytes | bytearray, tell: Tell) -> dict[str, Any]:
    """Makes or finds the environment of the lock. Refused: digest, unsuitable (with what the installer said)."""
    began, lock = time.monotonic(), _checked(place, header, body)
    with alone(place.public, SECONDS, tell, "another installation"):
        folder = place.environment(header["lock"])
        mark = _reusable(folder, header["lock"])
        if mark is None:
            mark = _Maker(place, folder, tell).make(lock, header["lock"])
    write_atomic(place.private / "installed.json", canonical(
        {"payload": header["payload"], "lock": header["lock"], "variant": plain(str(header.get("variant")), 32),
         "environment": folder.name}))
    return {"packages": mark["packages"], "seconds": int(time.monotonic() - began), "environment": mark["environment"]}


def _checked(place: Workspace, header: dict[str, Any], body: bytes | bytearray) -> tuple[bytes, bytes]:
    """(lock, uv's lock) when payload and locks are what the header says."""
    size = header.get("lock_bytes")
    if not isinstance(size, int) or isinstance(size, bool) or not 0 <= size <= len(body):
        raise Refused("bad-request", "lock_bytes is not a number that can be")
    lock, uv_lock = bytes(body[:size]), bytes(body[size:])
    for digest, data in ((header.get("lock", ""), lock), (header.get("uv_lock", ""), uv_lock)):
        if digest_bytes(data) != "sha256:" + bare(digest):
            raise Refused("digest", "the lock does not have its digest")
    archive = place.private / "payload.zip"
    if not archive.is_file() or digest_file(archive) != "sha256:" + bare(header.get("payload", "")):
        raise Refused("digest", "the payload is not here with this digest")
    return lock, uv_lock


def _reusable(folder: Path, lock: str) -> dict[str, Any] | None:
    """The mark of a complete environment whose files, drawn at random, are still what their records say."""
    mark, packages = read_json(folder / public.MARK), site_packages(folder)
    if mark is None or packages is None or mark.get("schema") != public.ENVIRONMENT_SCHEMA or mark.get("lock") != lock:
        return None
    try:
        rows = public.recorded(packages)
    except (OSError, ValueError):
        return None
    same = public.environment_digest(rows) == mark.get("environment")
    return mark if same and public.sound(packages, rows, public.SAMPLE) else None


class _Maker:
    """One environment in the making."""

    def __init__(self, place: Workspace, folder: Path, tell: Tell) -> None:
        self.place, self.folder, self.tell = place, folder, tell
        self.part = folder.with_name(folder.name + ".part")
        self.cache = place.public / ".uv-cache"
        self.tools = place.scratch / "tools"
        self.deadline = time.monotonic() + SECONDS
        self.reason, self.no_uv = "", ""
        self.log = place.scratch / "installer.log"
        self.wanted = 0                  # packages of the lock

    def make(self, locks: tuple[bytes, bytes], digest: str) -> dict[str, Any]:
        self.wanted = locks[0].count(b"==")
        for stale in (self.part, self.folder):
            remove_public(stale)
        lock, uv_lock = self.place.scratch / "lock.txt", self.place.scratch / "uv-lock.txt"
        write_atomic(lock, locks[0])
        write_atomic(uv_lock, locks[1])
        try:
            tool = self._make_with(self._find_uv(uv_lock), lock)
            return self._mark(digest, tool)
        finally:
            for gone in (self.part, self.cache, self.tools):
                remove_public(gone)

    def _make_with(self, uv: str | None, lock: Path) -> str:
        if uv is not None:
            own = sys.executable if sys.version_info >= NEEDED else ">=3.11"
            self._run(uv, "venv", "--python", own, "--relocatable", str(self.part))
            self._run(uv, "pip", "sync", "--python", str(self.part / "bin" / "python"), *STRICT, "--compile-bytecode",
                      *_find_links(), *(("--no-index",) if _no_index() else ()), str(lock))
            return "uv"
        if sys.version_info < NEEDED:
            raise Refused("unsuitable", f"python {sys.version_info[0]}.{sys.version_info[1]} and no uv; 3.11 is needed"
                          + (f"; uv: {self.no_uv}" if self.no_uv else ""))
        self._run(sys.executable, "-m", "venv", "--without-pip", str(self.part))
        packages = site_packages(self.part)
        self._run(*self._pip(), "install", *STRICT, "--no-deps", "--no-cache-dir", "--progress-bar", "off", "--target",
                  str(packages), "--requirement", str(lock))
        return "pip"

    def _find_uv(self, uv_lock: Path) -> str | None:
        """uv on the path, or of our own lock from the node's index; None where neither is to be had."""
        there = shutil.which("uv")
        if there or not self._try(sys.executable, "-m", "pip", "--version"):
            return there
        done = self._try(sys.executable, "-m", "pip", "install", *STRICT, "--no-deps", "--no-cache-dir", "--quiet",
                         "--target", str(self.tools), "--requirement", str(uv_lock))
        self.no_uv, found = self.reason, self.tools / "bin" / "uv"
        return str(found) if done and found.is_file() else None

    def _pip(self) -> list[str]:
        """The node's pip, or the one that Python brings along, in a throw-away environment."""
        if self._try(sys.executable, "-m", "pip", "--version"):
            return [sys.executable, "-m", "pip"]
        self._run(sys.executable, "-m", "venv", str(self.tools))
        return [str(self.tools / "bin" / "python"), "-m", "pip"]

    def _mark(self, lock: str, tool: str) -> dict[str, Any]:
        packages = site_packages(self.part)
        if packages is None:
            raise Refused("unsuitable", "the environment has no place for packages")
        rows = public.recorded(packages)
        count = sum(path.name.endswith(".dist-info") for path in entries(packages))
        if not public.sound(packages, rows, len(rows)):
            raise Refused("unsuitable", "an installed file is not what its wheel's record says")
        mark = {"schema": public.ENVIRONMENT_SCHEMA, "lock": lock, "packages": count, "tool": tool,
                "environment": public.environment_digest(rows)}
        write_atomic(self.part / public.MARK, canonical(mark))
        self.part.replace(self.folder)
        return mark

    # ---- running the installers ------------------------------------------------------------------------------

    def _run(self, *words: str) -> None:
        if not self._try(*words):
            raise Refused("unsuitable", "the environment cannot be made: " + self.reason)

    def _try(self, *words: str) -> bool:
        """Runs to the end, in silence. False when it failed; `reason` then says why."""
        with self.log.open("wb") as output:
            try:
                process = subprocess.Popen(words, stdin=subprocess.DEVNULL, stdout=output, stderr=output,
                                           env=self._environment(), cwd=self.place.scratch, start_new_session=True,
                                           preexec_fn=die_with_parent)
            except OSError:
                self.reason = "the installer cannot be started"
                return False
            self._wait(process)
        late = time.monotonic() > self.deadline
        self.reason = f"not done after {SECONDS // 60} minutes" if late else reasons.reason(self.log)
        self.log.unlink()
        return process.returncode == 0

    def _wait(self, process: subprocess.Popen[bytes]) -> None:
        asked = 0.0
        while process.poll() is None:
            if time.monotonic() > self.deadline:
                process.kill()
            if time.monotonic() - asked > 0.5:
                asked = time.monotonic()
                there = self._installed()
                self.tell(there, self.wanted, f"installing {reasons.newest_name(self.log)}".strip()
                          if there < self.wanted else "compiling the packages")
            time.sleep(0.05)

    def _installed(self) -> int:
        """Packages that are in their place so far."""
        packages = site_packages(self.part)
        return len(list(packages.glob("*.dist-info"))) if packages else 0

    def _environment(self) -> dict[str, str]:
        """The node's own words about where packages come from; caches and temporary files inside the workspace."""
        given = {name: value for name, value in os.environ.items()
                 if name in PASSED_ON or name.startswith(("PIP_", "UV_"))}
        if "PIP_INDEX_URL" in given:
            given.setdefault("UV_DEFAULT_INDEX", given["PIP_INDEX_URL"])
        if "PIP_CERT" in given:
            given.setdefault("SSL_CERT_FILE", given["PIP_CERT"])
        given.pop("UV_PROJECT_ENVIRONMENT", None)
        return {**given, "TMPDIR": str(self.place.scratch), "UV_CACHE_DIR": str(self.cache), "UV_NO_PROGRESS": "1",
                "UV_PYTHON_INSTALL_DIR": str(self.place.public / "python"), "PIP_DISABLE_PIP_VERSION_CHECK": "1",
                "PIP_NO_INPUT": "1", "LC_ALL": "C.UTF-8"}


def _find_links() -> list[str]:
    folders = os.environ.get("PIP_FIND_LINKS", "").split()
    return [word for folder in folders if "://" in folder or Path(folder).is_dir() for word in ("--find-links", folder)]


def _no_index() -> bool:
    return os.environ.get("PIP_NO_INDEX", "").lower() in ("1", "true", "yes", "on")
