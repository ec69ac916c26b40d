"""The Hub port and the lab's hub, held against each other and against the real huggingface_hub."""
from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import pytest
from safetensors.numpy import save
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.routing import Route

from orchestrator import ports
from orchestrator.errors import BadInput, Refused, Unreachable
from orchestrator.hub import HubClient
from orchestrator.lab.hub import app
from tests.fakes.serve import served

REPO = "lab/tiny-llama"
CONFIG = {"model_type": "llama", "architectures": ["LlamaForCausalLM"]}
WEIGHTS = save({"w": np.ones(300_000, "float32")}, metadata={"format": "pt"})
KEPT = {"config.json", "generation_config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"}


def json_file(path: Path, tree: Any) -> None:
    path.write_text(json.dumps(tree))


@pytest.fixture
def repo(tmp_path: Path) -> Path:
    folder = tmp_path / "hub" / REPO
    folder.mkdir(parents=True)
    json_file(folder / "config.json", CONFIG)
    for name in ("generation_config.json", "tokenizer.json", "tokenizer_config.json"):
        json_file(folder / name, {"name": name})
    (folder / "model.safetensors").write_bytes(WEIGHTS)
    (folder / "README.md").write_text("not taken")
    (folder / "modeling_tiny.py").write_text("raise SystemExit")
    (folder / "pytorch_model.bin").write_bytes(b"a pickle")
    return folder


@pytest.fixture
def address(repo: Path, tmp_path: Path) -> Iterator[str]:
    with served(app(tmp_path / "hub")) as url:
        yield url


@pytest.fixture
def hub(address: str) -> ports.Hub:
    return HubClient(address + "/")


def sha256(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_a_model_is_resolved(hub: ports.Hub, address: str, repo: Path) -> None:
    base = hub.resolve(REPO, "main")
    assert dict(base.files) == {name: sha256(repo / name) for name in KEPT}
    assert (base.endpoint, base.repo) == (address, REPO) and len(base.commit) == 40
    assert base.size == sum((repo / name).stat().st_size for name in KEPT)
    assert list(base.files) == sorted(base.files)
    assert hub.resolve(REPO, base.commit) == base


def test_other_bytes_are_another_commit(hub: ports.Hub, repo: Path) -> None:
    before = hub.resolve(REPO, "main")
    json_file(repo / "tokenizer.json", {"changed": True})
    assert hub.resolve(REPO, "main").commit != before.commit
    with pytest.raises(BadInput, match="has no revision"):
        hub.resolve(REPO, before.commit)


def test_shards(hub: ports.Hub, repo: Path) -> None:
    (repo / "model.safetensors").unlink()
    shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"]
    for name in (*shards, "consolidated.safetensors"):
        (repo / name).write_bytes(save({name: np.ones(3, "float32")}))
    json_file(repo / "model.safetensors.index.json", {"weight_map": {"a": shards[0], "b": shards[1]}})
    assert {name for name, _ in hub.resolve(REPO, "main").files} == \
        KEPT - {"model.safetensors"} | {*shards, "model.safetensors.index.json"}
    (repo / shards[1]).unlink()
    with pytest.raises(BadInput, match=f"its index names {shards[1]}, which is not there"):
        hub.resolve(REPO, "main")


@pytest.mark.parametrize("shard", ["../model-00001-of-00001.safetensors", "/etc/passwd", "pytorch_model.bin", 5])
def test_an_index_names_no_path(hub: ports.Hub, repo: Path, shard: Any) -> None:
    (repo / "model.safetensors").unlink()
    json_file(repo / "model.safetensors.index.json", {"weight_map": {"a": shard}})
    with pytest.raises(BadInput, match="which is no shard of it"):
        hub.resolve(REPO, "main")


@pytest.mark.parametrize(("name", "content", "told"), [
    ("config.json", {**CONFIG, "auto_map": {"AutoModel": "x.Y"}}, "brings code of its own"),
    ("tokenizer_config.json", {"auto_map": {"AutoTokenizer": ["x.Y", None]}}, "brings code of its own"),
    ("config.json", {**CONFIG, "quantization_config": {"bits": 4}}, "is quantised already"),
    ("config.json", {"model_type": "bert", "architectures": ["BertForMaskedLM"]}, "does not write text"),
    ("config.json", {"architectures": []}, "names no model_type"),
    ("config.json", [], "config.json cannot be read"),
    ("config.json", None, "has no config.json"),
    ("model.safetensors", None, "has no safetensors weights"),
    ("tokenizer.json", None, "has no tokenizer"),
])
def test_models_that_cannot_be_used(hub: ports.Hub, repo: Path, name: str, content: Any, told: str) -> None:
    (repo / name).unlink()
    if content is not None:
        json_file(repo / name, content)
    with pytest.raises(BadInput, match=told) as caught:
        hub.resolve(REPO, "main")
    assert REPO in str(caught.value)


@pytest.mark.parametrize(("model", "revision", "told"), [
    ("lab/none", "main", "lab/none is not on the hub, or not open to all"),
    (REPO, "v2", "lab/tiny-llama has no revision v2"),
    (REPO, "../../x", "has no revision"),
    ("../lab/x", "main", "is not the name of a model"),
    ("lab/a?b", "main", "is not the name of a model"),
])
def test_unknown(hub: ports.Hub, model: str, revision: str, told: str) -> None:
    with pytest.raises(BadInput, match=told):
        hub.resolve(model, revision)


def test_nobody_answers() -> None:
    with pytest.raises(Unreachable, match="does not answer"):
        HubClient("http://127.0.0.1:1").resolve(REPO, "main")
    with pytest.raises(BadInput, match="https is needed"):
        HubClient("http://hub.example")


# ---- the real download code ----------------------------------------------------------------------------------


def test_the_real_client_downloads(hub: ports.Hub, address: str, tmp_path: Path,
                                   monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    from huggingface_hub import hf_hub_download
    base = hub.resolve(REPO, "main")
    for name, digest in base.files:
        path = hf_hub_download(REPO, name, revision=base.commit, endpoint=address, local_dir=tmp_path / "local",
                               cache_dir=tmp_path / "cache", token=False)
        assert sha256(Path(path)) == digest


def test_the_real_client_takes_a_snapshot_and_resumes(hub: ports.Hub, address: str, tmp_path: Path,
                                                      monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_HOME", str(tmp_path / "hf"))
    from huggingface_hub import snapshot_download
    base = hub.resolve(REPO, "main")
    cache = tmp_path / "cache"
    blobs = cache / "models--lab--tiny-llama" / "blobs"
    blobs.mkdir(parents=True)
    (blobs / f"{dict(base.files)['model.safetensors']}.incomplete").write_bytes(WEIGHTS[:700_000])
    path = Path(snapshot_download(REPO, revision="main", endpoint=address, cache_dir=cache, token=False,
                                  allow_patterns=["*.json", "*.safetensors"]))
    assert path.name == base.commit and sha256(path / "model.safetensors") == dict(base.files)["model.safetensors"]


def test_the_real_client_hears_what_is_unknown(address: str, tmp_path: Path) -> None:
    from huggingface_hub import hf_hub_download
    from huggingface_hub.errors import EntryNotFoundError, RepositoryNotFoundError, RevisionNotFoundError
    for repo, name, revision, error in (("lab/none", "config.json", "main", RepositoryNotFoundError),
                                        (REPO, "none.json", "main", EntryNotFoundError),
                                        (REPO, "config.json", "v2", RevisionNotFoundError)):
        with pytest.raises(error):
            hf_hub_download(repo, name, revision=revision, endpoint=address, cache_dir=tmp_path / "c", token=False)


def test_parts_of_a_file(address: str) -> None:
    url = f"{address}/{REPO}/resolve/main/model.safetensors"
    part = httpx.get(url, headers={"range": "bytes=100-199"})
    assert (part.status_code, part.content) == (206, WEIGHTS[100:200])
    head = httpx.head(url)
    assert head.headers["content-length"] == str(len(WEIGHTS)) and not head.content
    assert head.headers["x-linked-etag"] == f'"{hashlib.sha256(WEIGHTS).hexdigest()}"'


@pytest.mark.parametrize("path", ["/lab/../lab/x/resolve/main/config.json", f"/{REPO}/resolve/main/..%2f..%2fsecret",
                                  "/..%2f/x/resolve/main/secret", f"/{REPO}/resolve/main/link"])
def test_the_lab_hub_stays_in_its_folder(address: str, repo: Path, tmp_path: Path, path: str) -> None:
    (tmp_path / "secret").write_text("secret")
    (repo / "link").symlink_to(tmp_path / "secret")
    answer = httpx.get(address + path)
    assert answer.status_code in (401, 404) and "secret" not in answer.text


# ---- a hub that is not as it should be ------------------------------------------------------------------------


class Odd:
    """A hub whose answers a test can spoil: the listing's fields, or the answer as a whole."""

    def __init__(self, **listing: Any) -> None:
        blob = hashlib.sha1(b"blob 2\0{}").hexdigest()
        self.listing: dict[str, Any] = {"id": REPO, "sha": "a" * 40, "gated": False, "siblings": [
            {"rfilename": "config.json", "size": 2, "blobId": blob},
            {"rfilename": "tokenizer.json", "size": 2, "blobId": blob},
            {"rfilename": "model.safetensors", "size": 9, "lfs": {"sha256": "b" * 64, "size": 9}}], **listing}
        self.answer: Response | None = None
        self.body = b"{}"
        self.tokens: list[str | None] = []

    def __call__(self) -> Starlette:
        async def models(request: Request) -> Response:
            self.tokens.append(request.headers.get("authorization"))
            return self.answer or JSONResponse(self.listing)

        async def file(request: Request) -> Response:
            return Response(self.body)
        return Starlette(routes=[Route("/api/models/{rest:path}", models), Route("/{rest:path}", file)])

    def resolve(self, token: str | None = None) -> Any:
        with served(self()) as url:
            return HubClient(url, token).resolve(REPO, "main")


def test_a_model_is_described_by_the_bytes_that_were_resolved(address: str, repo: Path) -> None:
    hub = HubClient(address)
    base = hub.resolve(REPO, "main")
    assert hub.describe(base)["model_type"] == json.loads((repo / "config.json").read_bytes())["model_type"]
    files = tuple((name, "0" * 64 if name == "config.json" else digest) for name, digest in base.files)
    with pytest.raises(Unreachable, match=r"config\.json of .* arrived damaged"):
        hub.describe(replace(base, files=files))


@pytest.mark.parametrize("gated", ["auto", "manual", True])
def test_a_gated_model_is_refused_with_the_way_to_its_licence(gated: Any) -> None:
    with pytest.raises(BadInput, match="is gated: its licence") as caught:
        Odd(gated=gated).resolve(token="hf_secret")
    assert f"/{REPO}" in str(caught.value.hint) and "hf_secret" not in str(caught.value)


def test_a_gate_told_by_status() -> None:
    odd = Odd()
    odd.answer = JSONResponse({}, 403, {"x-error-code": "GatedRepo"})
    with pytest.raises(BadInput, match="is gated"):
        odd.resolve()


def test_a_token_goes_to_the_hub() -> None:
    odd = Odd(private=True)
    with pytest.raises(BadInput):
        odd.resolve(token="hf_secret")
    assert odd.tokens == ["Bearer hf_secret"]


@pytest.mark.parametrize("status", [429, 500, 503])
def test_a_hub_out_of_order(status: int) -> None:
    odd = Odd()
    odd.answer = JSONResponse({}, status)
    with pytest.raises(Unreachable, match=f"does not serve now: status {status}"):
        odd.resolve()


@pytest.mark.parametrize("changes", [
    {"sha": "main"}, {"sha": None}, {"sha": "../" * 13}, {"siblings": None}, {"siblings": [{}]}, {"siblings": ["x"]},
    {"siblings": [{"rfilename": "config.json", "size": -1}]}, {"id": "../../x"},
    {"siblings": [{"rfilename": "config.json", "size": 2, "lfs": {"sha256": "../x", "size": 2}}]},
])
def test_a_listing_that_is_none(changes: dict[str, Any]) -> None:
    with pytest.raises(Unreachable, match="hub"):
        Odd(**changes).resolve()


@pytest.mark.parametrize("body", [b"<html>", b"[]", b"[" * 100_000, b"\xff"])
def test_an_answer_that_is_no_listing(body: bytes) -> None:
    odd = Odd()
    odd.answer = Response(body)
    with pytest.raises(Unreachable):
        odd.resolve()


def test_files_that_are_not_those_of_the_listing() -> None:
    odd = Odd()
    odd.body = b'{"model_type": "llama"}'
    with pytest.raises(Unreachable, match=r"config\.json of lab/tiny-llama arrived damaged"):
        odd.resolve()


def test_a_file_without_end() -> None:
    odd = Odd()
    odd.body = bytes(17 * 2**20)
    with pytest.raises(Refused, match="is larger than") as raised:
        odd.resolve()
    assert not isinstance(raised.value, BadInput), "the hub is at fault, not what the person wrote"


def test_endless_redirects() -> None:
    odd = Odd()
    odd.answer = RedirectResponse(f"/api/models/{REPO}/revision/main")
    with pytest.raises(Unreachable, match="TooManyRedirects"):
        odd.resolve()


def test_a_model_that_moved_is_known_by_its_new_name(address: str, repo: Path) -> None:
    shutil.copytree(repo, repo.with_name("renamed"))
    assert HubClient(address).resolve("lab/renamed", "main").repo == "lab/renamed"
