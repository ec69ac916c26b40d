"""The environment: exactly the wheels of the lock, from a folder of wheels and nowhere else, made once and used again."""
from __future__ import annotations

import base64
import hashlib
import json
import os
import shutil
import subprocess
import sys
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from orchestrator.domain.document import sha256
from orchestrator.node.frames import Frame, Verb, encode
from remote_payload import public
from tests.payload.talk import Node, Refused, a_node, until

pytestmark = pytest.mark.noleak


def a_wheel(folder: Path, name: str, source: str, spoil: bool = False) -> tuple[str, str]:
    """Writes a wheel by hand. (line of a lock, file name). `spoil`: its record does not tell the truth."""
    content = {f"{name}.py": source.encode(), f"{name}-1.0.dist-info/METADATA":
               f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n".encode(), f"{name}-1.0.dist-info/WHEEL":
               b"Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"}
    def value(data: bytes) -> str:
        return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
    record = "".join(f"{path},sha256={value(data if not spoil else data + b' ')},{len(data)}\n"
                     for path, data in content.items())
    content[f"{name}-1.0.dist-info/RECORD"] = (record + f"{name}-1.0.dist-info/RECORD,,\n").encode()
    path = folder / f"{name}-1.0-py3-none-any.whl"
    with zipfile.ZipFile(path, "w") as wheel:
        for place, data in content.items():
            wheel.writestr(place, data)
    return f"{name}==1.0 --hash=sha256:{hashlib.sha256(path.read_bytes()).hexdigest()}\n", path.name


@pytest.fixture
def wheels(tmp_path: Path) -> Path:
    (tmp_path / "wheels").mkdir()
    return tmp_path / "wheels"


def offline(wheels: Path, uv: bool) -> dict[str, str]:
    """The node's environment: a folder of wheels, no index, with uv on the path or not."""
    tools = wheels.parent / "tools"
    tools.mkdir()
    if uv:
        beside = Path(sys.executable).with_name("uv")
        (tools / "uv").symlink_to(beside if beside.is_file() else str(shutil.which("uv")))
    return {"PIP_FIND_LINKS": f"{wheels} {wheels}/none", "PIP_NO_INDEX": "1", "PATH": f"{tools}:/usr/bin:/bin",
            "PIP_CONFIG_FILE": os.devnull}


@pytest.fixture(params=[True, False], ids=["uv", "pip"])
def node(tmp_path: Path, wheels: Path, request: pytest.FixtureRequest) -> Iterator[Node]:
    with a_node(tmp_path / "home", environment=offline(wheels, request.param)) as node:
        yield node


def test_a_lock_becomes_an_environment_once(node: Node, wheels: Path) -> None:
    lines = [a_wheel(wheels, "first", "word = 'here'\n")[0], a_wheel(wheels, "second", "import first\n")[0]]
    agent, lock = node.armed(), "".join(lines).encode()
    said = node.install(agent, lock)
    assert said["packages"] == 2
    folder = node.place.environment(sha256(lock))
    python = folder / "bin" / "python"
    done = subprocess.run([python, "-I", "-c", "import second; print(second.first.word)"], capture_output=True, text=True)
    assert done.stdout == "here\n" and list(folder.rglob("first*.pyc"))
    assert {path.name for path in node.place.public.iterdir()} == {"models", folder.name}
    assert not list(node.place.scratch.iterdir()) or {p.name for p in node.place.scratch.iterdir()} <= {
        "lock.txt", "uv-lock.txt"}

    marked = (folder / public.MARK).stat().st_mtime_ns
    assert {**node.install(agent, lock), "seconds": 0} == {**said, "seconds": 0}
    assert (folder / public.MARK).stat().st_mtime_ns == marked


def test_an_environment_that_rotted_is_made_again(node: Node, wheels: Path) -> None:
    lock = a_wheel(wheels, "first", "word = 'here'\n")[0].encode()
    agent = node.armed()
    said = node.install(agent, lock)
    folder = node.place.environment(sha256(lock))
    (module,) = folder.rglob("first.py")
    module.chmod(0o644)
    module.write_text("word = 'else'\n")
    assert node.install(agent, lock)["environment"] == said["environment"]
    (module,) = folder.rglob("first.py")
    assert module.read_text() == "word = 'here'\n"


def test_half_an_environment_does_not_count(node: Node, wheels: Path) -> None:
    lock = a_wheel(wheels, "first", "word = 'here'\n")[0].encode()
    folder = node.place.environment(sha256(lock))
    for place in (node.place.root, node.place.public, folder, folder.with_name(folder.name + ".part")):
        place.mkdir(mode=0o700)
    assert node.install(node.armed(), lock)["packages"] == 1
    assert not folder.with_name(folder.name + ".part").exists()


def test_a_wheel_with_another_hash_is_refused(node: Node, wheels: Path) -> None:
    line, name = a_wheel(wheels, "first", "word = 'here'\n")
    with zipfile.ZipFile(wheels / name, "a") as wheel:
        wheel.writestr("first_extra.py", "")
    with pytest.raises(Refused, match="unsuitable") as refused:
        node.install(node.armed(), line.encode())
    assert len(refused.value.detail) <= 600 and str(node.home) not in refused.value.detail
    assert "a package is not what the lock says" in refused.value.detail
    assert {path.name for path in node.place.public.iterdir()} == {"models"}


def test_what_the_node_does_not_have_is_refused(node: Node) -> None:
    with pytest.raises(Refused, match=r"unsuitable: .*the package index does not have what the lock names: .*missing"):
        node.install(node.armed(), b"missing==1.0 --hash=sha256:" + b"0" * 64 + b"\n")


def test_source_archives_are_refused(node: Node, wheels: Path) -> None:
    archive = wheels / "first-1.0.tar.gz"
    archive.write_bytes(b"not even one")
    line = f"first==1.0 --hash=sha256:{hashlib.sha256(archive.read_bytes()).hexdigest()}\n"
    with pytest.raises(Refused, match="unsuitable"):
        node.install(node.armed(), line.encode())


def test_a_payload_or_a_lock_that_is_another_is_refused(tmp_path: Path) -> None:
    with a_node(tmp_path / "home") as node:
        node.prepare_environment()
        agent = node.armed()
        with pytest.raises(Refused, match="digest"):
            agent.ask("install", {"payload": sha256(b"x"), "lock": sha256(b"a"), "uv_lock": sha256(b"b"),
                                  "variant": "cpu", "lock_bytes": 1}, b"ab")
        node.install(agent)
        with pytest.raises(Refused, match="digest"):
            agent.ask("install", {"payload": sha256(node.archive), "lock": sha256(b"a"), "uv_lock": sha256(b"b"),
                                  "variant": "cpu", "lock_bytes": 1}, b"xb")
        with pytest.raises(Refused, match="bad-request"):
            agent.ask("install", {"payload": sha256(node.archive), "lock": sha256(b"a"), "uv_lock": sha256(b"b"),
                                  "variant": "cpu", "lock_bytes": 9}, b"ab")


def test_a_record_that_lies_is_no_environment(tmp_path: Path, wheels: Path) -> None:
    line, _ = a_wheel(wheels, "first", "word = 'here'\n", spoil=True)
    with a_node(tmp_path / "home", environment=offline(wheels, uv=True)) as node:
        with pytest.raises(Refused, match="unsuitable"):
            node.install(node.armed(), line.encode())


def a_slow_uv(folder: Path, seconds: int) -> dict[str, str]:
    """A tool of this name that talks, waits and fails."""
    folder.mkdir()
    (folder / "uv").write_text(f"#!/bin/sh\necho 'Downloading first (2MiB)' from /a/place\nsleep {seconds}\n"
                               "echo 'no such wheel'\nexit 1\n")
    (folder / "uv").chmod(0o755)
    return {"PATH": f"{folder}:/usr/bin:/bin"}


def test_a_slow_installer_is_heard_and_says_what_it_is_at(tmp_path: Path) -> None:
    with a_node(tmp_path / "home", environment=a_slow_uv(tmp_path / "tools", 3)) as node:
        agent = node.armed()
        with pytest.raises(Refused) as refused:
            node.install(agent, b"first==1.0\n")
        assert refused.value.detail == ("the environment cannot be made: Downloading first (2MiB) from (a place) | "
                                        "no such wheel")
        assert {p["what"] for p in agent.progress} == {"installing first"} and 1 <= len(agent.progress) <= 5
        assert {(p["done"], p["of"]) for p in agent.progress} == {(0, 1)}


def test_an_installer_ends_with_its_connection(tmp_path: Path) -> None:
    with a_node(tmp_path / "home", environment=a_slow_uv(tmp_path / "tools", 60)) as node:
        first = node.armed()
        node.put(first, "payload.zip", node.archive)
        header = {"payload": sha256(node.archive), "lock": sha256(b"a"), "uv_lock": sha256(b"b"), "variant": "cpu",
                  "lock_bytes": 1}
        first.send(encode(Frame(Verb.INSTALL, header, b"ab")))
        tool = str(tmp_path / "tools" / "uv").encode()
        until(lambda: running(tool))
        first.kill()
        until(lambda: not running(tool), 20)
        with pytest.raises(Refused, match="digest"):
            node.connect().ask("install", {**header, "payload": sha256(b"other")}, b"ab")


def running(tool: bytes) -> bool:
    """Is there a process with this word in its command?"""
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            if tool in path.read_bytes().split(b"\0"):
                return True
        except OSError:
            continue
    return False


def test_the_rehearsal_has_what_its_lock_names(tmp_path: Path) -> None:
    """The agent's own note of what it installed names the environment that the job will run in."""
    with a_node(tmp_path / "home") as node:
        folder = node.prepare_environment()
        node.install(node.armed())
        note = json.loads((node.place.private / "installed.json").read_text())
        assert note["environment"] == folder.name and note["payload"] == sha256(node.archive)
