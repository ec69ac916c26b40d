"""The Hub port over the hub's HTTP API."""
from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote

from ..domain.document import must_be_shallow
from ..domain.training import BaseModel
from ..errors import BadInput, Unreachable
from .files import CONFIG, INDEX, SINGLE, Entry, check_config, described, entries, shards_of, weights
from .web import Answer, Web

DEPTH = 64
MOST_LISTING = 32 * 2**20
MOST_DESCRIPTION = 16 * 2**20
COMMIT = re.compile(r"[0-9a-f]{40}")
REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}(/[A-Za-z0-9][A-Za-z0-9._-]{0,95})?")
READ = (CONFIG, "tokenizer_config.json")         # whose words are judged; of the others only the digest is taken


class HubClient:
    """`endpoint`: the hub's address. A token helps against the hub's limits; no node ever sees it, so a model that
    only a token opens is refused. `models`: all that a small hub has, to be named to who looks for another."""

    def __init__(self, endpoint: str, token: str | None = None, models: Sequence[str] = ()) -> None:
        self._web, self._models = Web(endpoint, token), models

    def resolve(self, model: str, revision: str) -> BaseModel:
        """Read only: repo and revision to a commit and a table of file digests (name, sha256 hex), sorted by name.

        BadInput for an unknown model, one without safetensors, one that brings code, or a gated one. Unreachable."""
        if not REPO.fullmatch(model) or ".." in model:
            raise BadInput(f"{ascii(model)[1:-1][:80]} is not the name of a model", hint="write owner/name")
        repo, commit, listing = self._listing(model, revision)
        single = SINGLE in listing or INDEX not in listing
        shards = None if single else shards_of(self._json(repo, commit, listing[INDEX]), model)
        files = [*described(listing, model), *weights(listing, shards, model)]
        for name in READ:
            if name in listing:
                check_config(name, self._json(repo, commit, listing[name]), model)
        table = tuple(sorted((entry.name, self._sha256(repo, commit, entry)) for entry in files))
        return BaseModel(self._web.endpoint, repo, commit, table, sum(entry.size for entry in files))

    def describe(self, base: BaseModel) -> Mapping[str, Any]:
        """Read only: the model's config.json, the bytes that `base` names. BadInput, Unreachable."""
        digest = dict(base.files).get(CONFIG)
        entry = Entry(CONFIG, 0, digest, None)
        config = self._json(base.repo, base.commit, entry)
        check_config(CONFIG, config, base.repo)
        return dict(config)

    def _listing(self, model: str, revision: str) -> tuple[str, str, dict[str, Entry]]:
        """(repo as the hub calls it today, commit, its files)."""
        try:
            body = self._web.get(f"/api/models/{model}/revision/{quote(revision, safe='')}?blobs=true", MOST_LISTING)
        except Answer as answer:
            raise self._refusal(model, revision, answer) from None
        try:
            must_be_shallow(body, DEPTH)
            tree = json.loads(body)
            repo, commit, listing = str(tree.get("id") or model), tree["sha"], entries(tree["siblings"])
            closed = tree.get("gated") or tree.get("private")
        except (ValueError, KeyError, TypeError, AttributeError):
            raise Unreachable(f"hub {self._web.endpoint} answers something else than a model",
                              hint="check `hub:` in settings.yaml") from None
        if not isinstance(commit, str) or not COMMIT.fullmatch(commit) or not REPO.fullmatch(repo):
            raise Unreachable(f"hub {self._web.endpoint} names no commit of {model}")
        if closed:
            raise self._gated(model)
        return repo, commit, listing

    def _refusal(self, model: str, revision: str, answer: Answer) -> BadInput:
        if answer.code == "GatedRepo":
            return self._gated(model)
        if answer.code == "RevisionNotFound":
            return BadInput(f"{model} has no revision {revision}", hint="name a branch, a tag or a commit of it")
        if answer.status in (401, 403, 404):             # a hub says 401 for what it does not know
            only = f"; this hub has only {', '.join(self._models)}" if self._models else ""
            return BadInput(f"{model} is not on the hub, or not open to all", hint=f"check the spelling of `model:`{only}")
        return BadInput(f"the hub refuses {model} at {revision}: status {answer.status}")

    def _gated(self, model: str) -> BadInput:
        return BadInput(f"{model} is gated: its licence must be accepted first, and no token of yours goes to a node",
                        hint=f"read {self._web.endpoint}/{model}; choose an open copy of it")

    def _sha256(self, repo: str, commit: str, entry: Entry) -> str:
        return entry.sha256 or hashlib.sha256(self._file(repo, commit, entry)).hexdigest()

    def _json(self, repo: str, commit: str, entry: Entry) -> Any:
        try:
            text = self._file(repo, commit, entry)
            must_be_shallow(text, DEPTH)
            return json.loads(text)
        except ValueError:
            raise BadInput(f"{repo}: {entry.name} is not JSON") from None

    def _file(self, repo: str, commit: str, entry: Entry) -> bytes:
        """A small file, compared with the digest that the listing gives of it."""
        if entry.size > MOST_DESCRIPTION:
            raise BadInput(f"{repo}: {entry.name} has {entry.size} bytes, which is no description of a model")
        try:
            data = self._web.get(f"/{repo}/resolve/{commit}/{quote(entry.name)}", MOST_DESCRIPTION)
        except Answer as answer:
            raise self._refusal(repo, commit, answer) from None
        if not _is(data, entry):
            raise Unreachable(f"hub: {entry.name} of {repo} arrived damaged")
        return data


def _is(data: bytes, entry: Entry) -> bool:
    if entry.sha256:
        return hashlib.sha256(data).hexdigest() == entry.sha256
    git = hashlib.sha1(f"blob {len(data)}\0".encode() + data, usedforsecurity=False).hexdigest()
    return entry.blob in (None, git)
