"""The base model: by commit from a hub on this machine, every file checked, nothing else left on the node."""
from __future__ import annotations

import functools
import hashlib
import http.server
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from orchestrator.domain.document import canonical, encode, sha256
from orchestrator.hub import HubClient
from orchestrator.lab.hub import app
from tests.fakes.serve import served
from tests.payload.talk import Node, Refused, a_node

pytestmark = pytest.mark.noleak
COMMIT = "c0ffee" + "0" * 34
FILES = {"config.json": b'{"hidden_size":8}', "model.safetensors": b"\x08" * 300_000, "sub/tokenizer.json": b"{}"}


class Hub(http.server.SimpleHTTPRequestHandler):
    """Files under /<repo>/resolve/<commit>/…; what was asked for is noted."""

    asked: list[tuple[str, str | None]]

    def do_GET(self) -> None:
        self.asked.append((self.path, self.headers.get("Authorization")))
        super().do_GET()

    def log_message(self, *words: object) -> None:
        return


@pytest.fixture
def hub(tmp_path: Path) -> Iterator[tuple[str, Path, list[tuple[str, str | None]]]]:
    folder = tmp_path / "hub" / "lab" / "tiny" / "resolve" / COMMIT
    asked: list[tuple[str, str | None]] = []
    for name, data in FILES.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(data)
    handler = type("Noted", (Hub,), {"asked": asked})
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), functools.partial(handler, directory=tmp_path / "hub"))
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}", folder, asked
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Node]:
    """Its environment has no huggingface_hub, like the rehearsal's."""
    import venv
    venv.create(tmp_path / "bare", with_pip=False)
    with a_node(tmp_path / "home", environment={"HF_TOKEN": "hf_secret"}) as node:
        node.prepare_environment(str(tmp_path / "bare" / "bin" / "python"))
        yield node


def table(endpoint: str) -> dict[str, Any]:
    files = [[name, hashlib.sha256(data).hexdigest()] for name, data in sorted(FILES.items())]
    return {"repo": "lab/tiny", "commit": COMMIT, "files": files, "endpoint": endpoint}


def test_the_files_of_the_table_come_and_are_checked(node: Node, hub: Any) -> None:
    endpoint, _, asked = hub
    agent = node.armed()
    node.install(agent)
    base = table(endpoint)
    said = agent.ask("fetch", {"base": base}).header
    assert said == {"digest": sha256(canonical(base["files"])), "bytes": sum(map(len, FILES.values()))}
    place = node.place.models / COMMIT
    assert {str(p.relative_to(place)): p.read_bytes() for p in place.rglob("*") if p.is_file()} == FILES
    assert not [path for path in node.place.root.rglob("*") if path.is_symlink()]
    assert not list(node.place.scratch.glob("hub*"))
    assert len(asked) == len(FILES) and {token for _, token in asked} == {None}

    assert agent.ask("fetch", {"base": base}).header == said and len(asked) == len(FILES)
    (place / "config.json").write_bytes(b"rotten")
    (place / "stranger.bin").write_bytes(b"not of the table")
    assert agent.ask("fetch", {"base": base}).header == said and len(asked) == len(FILES) + 1
    assert not (place / "stranger.bin").exists()


def test_a_file_that_is_another_is_refused(node: Node, hub: Any) -> None:
    endpoint, folder, _ = hub
    agent = node.armed()
    node.install(agent)
    (folder / "config.json").write_bytes(b'{"auto_map":"evil"}')
    with pytest.raises(Refused, match="digest"):
        agent.ask("fetch", {"base": table(endpoint)})
    assert not (node.place.models / (COMMIT + ".json")).exists()


def test_a_hub_that_does_not_have_it_is_said(node: Node, hub: Any) -> None:
    endpoint, folder, _ = hub
    agent = node.armed()
    node.install(agent)
    (folder / "config.json").unlink()
    with pytest.raises(Refused, match="unsuitable") as refused:
        agent.ask("fetch", {"base": table(endpoint)})
    assert "127.0.0.1" not in refused.value.detail


@pytest.mark.parametrize("changes", [
    {"files": [["../../x", "0" * 64]]}, {"files": [["/etc/x", "0" * 64]]}, {"files": [["a", "0" * 63]]}, {"files": []},
    {"files": [[".hidden", "0" * 64]]}, {"files": "x"}, {"repo": "../x"}, {"commit": "main"}, {"commit": "../00000"},
    {"endpoint": "file:///etc"}, {"endpoint": 5}, {"files": [["a/../b", "0" * 64]]}])
def test_a_table_that_cannot_be_fetches_nothing(node: Node, hub: Any, changes: dict[str, Any]) -> None:
    endpoint, _, asked = hub
    agent = node.armed()
    node.install(agent)
    with pytest.raises(Refused, match="bad-request"):
        agent.ask("fetch", {"base": {**table(endpoint), **changes}})
    assert not asked


@pytest.mark.training
def test_the_real_download_code_against_a_hub(tmp_path: Path, trainer_python: Path, base: Path) -> None:
    shutil.copytree(base, tmp_path / "hub" / "lab" / "tiny")
    with served(app(tmp_path / "hub")) as endpoint, a_node(tmp_path / "home") as node:
        model = encode(HubClient(endpoint).resolve("lab/tiny", "main"))[0]
        node.prepare_environment(str(trainer_python))
        agent = node.armed()
        node.install(agent)
        files = sorted([name, digest] for name, digest in model["files"])
        asked = {**{word: model[word] for word in ("endpoint", "repo", "commit")}, "files": files}
        assert agent.ask("fetch", {"base": asked}).header["digest"] == sha256(canonical(files))
        place = node.place.models / model["commit"]
        found = {path.name: path.read_bytes() for path in place.rglob("*") if path.is_file()}
        assert found == {name: (base / name).read_bytes() for name, _ in files}
        assert not [path for path in node.place.root.rglob("*") if path.is_symlink()]
