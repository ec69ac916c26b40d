"""A folder served as a model hub on loopback, so that a node runs its real download code against it.

    folder/<owner>/<name>/<file>         weights (*.safetensors) are shown as large files, with their sha256

It answers what `huggingface_hub` and our own client ask: the listing of a revision, and files by HEAD and GET with
ETag, commit and ranges. Read only; every revision is the one commit that follows from the files' digests.
"""
from __future__ import annotations

import functools
import hashlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from starlette.applications import Starlette
    from starlette.requests import Request
    from starlette.responses import Response

    How = Callable[[Request, Path, list["Stored"], str], Response]

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,95}")
BRANCH = "main"


@dataclass(frozen=True, slots=True)
class Stored:
    """One file with both of its digests: git's for small files, sha256 for large ones."""

    path: Path
    size: int
    sha256: str
    blob: str

    @property
    def large(self) -> bool:
        return self.path.suffix == ".safetensors"

    @property
    def etag(self) -> str:
        return self.sha256 if self.large else self.blob


def app(folder: Path) -> Starlette:
    """The hub's ASGI application over `folder`."""
    from starlette.applications import Starlette
    from starlette.routing import Route
    model = "/api/models/{owner}/{name}"
    return Starlette(routes=[
        Route(model, _answered(folder, _listing)),
        Route(f"{model}/revision/{{revision:path}}", _answered(folder, _listing)),
        Route(f"{model}/tree/{{revision:path}}", _answered(folder, _tree)),
        Route("/{owner}/{name}/resolve/{revision}/{file}", _answered(folder, _file), methods=["GET", "HEAD"])])


def _answered(folder: Path, how: How) -> Callable[[Request], Response]:
    """What every request needs first: a repository that is there, and a revision that it has."""
    def endpoint(request: Request) -> Response:
        repo = _repo(folder, request)
        if repo is None:
            return _unknown("RepoNotFound", 401)         # as the public hub does for what it does not know
        files = _files(repo)
        commit = commit_of(files)
        if request.path_params.get("revision", BRANCH) not in (BRANCH, commit):
            return _unknown("RevisionNotFound")
        return how(request, repo, files, commit)
    return endpoint


def _listing(request: Request, repo: Path, files: list[Stored], commit: str) -> Response:
    from starlette.responses import JSONResponse
    name = f"{repo.parent.name}/{repo.name}"
    return JSONResponse({"_id": commit[:24], "id": name, "modelId": name, "sha": commit, "private": False,
                         "gated": False, "disabled": False, "tags": [], "downloads": 0, "likes": 0,
                         "siblings": [_sibling(stored) for stored in files]})


def _tree(request: Request, repo: Path, files: list[Stored], commit: str) -> Response:
    from starlette.responses import JSONResponse
    return JSONResponse([{"type": "file", "path": stored.path.name, "oid": stored.blob, "size": stored.size,
                          **({"lfs": {"oid": stored.sha256, **_pointer(stored)}} if stored.large else {})}
                         for stored in files])


def _file(request: Request, repo: Path, files: list[Stored], commit: str) -> Response:
    from starlette.responses import FileResponse
    stored = next((s for s in files if s.path.name == request.path_params["file"]), None)
    if stored is None:
        return _unknown("EntryNotFound", commit=commit)
    return FileResponse(stored.path, media_type="application/octet-stream", headers=_headers(stored, commit))


def commit_of(files: list[Stored]) -> str:
    """40 hex digits that stand for exactly these names and bytes."""
    text = "".join(f"{stored.path.name} {stored.sha256}\n" for stored in files)
    return hashlib.sha256(text.encode()).hexdigest()[:40]


def _repo(folder: Path, request: Request) -> Path | None:
    owner, name = request.path_params["owner"], request.path_params["name"]
    if not (NAME.fullmatch(owner) and NAME.fullmatch(name)) or ".." in owner + name:
        return None
    repo = folder / owner / name
    return repo if repo.is_dir() else None


def _files(repo: Path) -> list[Stored]:
    return [_stored(path, (info := path.stat()).st_size, info.st_mtime_ns) for path in sorted(repo.iterdir())
            if path.is_file() and not path.is_symlink() and NAME.fullmatch(path.name)]


@functools.lru_cache(maxsize=256)
def _stored(path: Path, size: int, changed: int) -> Stored:
    """Digests of a file; kept as long as its size and its time of change stay the same."""
    sha256, blob = hashlib.sha256(), hashlib.sha1(f"blob {size}\0".encode(), usedforsecurity=False)
    with path.open("rb") as source:
        while piece := source.read(1 << 20):
            sha256.update(piece)
            blob.update(piece)
    return Stored(path, size, sha256.hexdigest(), blob.hexdigest())


def _sibling(stored: Stored) -> dict[str, object]:
    row: dict[str, object] = {"rfilename": stored.path.name, "size": stored.size, "blobId": stored.blob}
    if stored.large:
        row["lfs"] = {"sha256": stored.sha256, **_pointer(stored)}
    return row


def _pointer(stored: Stored) -> dict[str, int]:
    return {"size": stored.size, "pointerSize": 134}


def _headers(stored: Stored, commit: str) -> dict[str, str]:
    headers = {"ETag": f'"{stored.etag}"', "X-Repo-Commit": commit}
    if stored.large:
        headers |= {"X-Linked-Etag": f'"{stored.sha256}"', "X-Linked-Size": str(stored.size)}
    return headers


def _unknown(code: str, status: int = 404, commit: str | None = None) -> Response:
    from starlette.responses import JSONResponse
    headers = {"X-Error-Code": code, "X-Error-Message": "not here"}
    return JSONResponse({"error": code}, status, {**headers, "X-Repo-Commit": commit} if commit else headers)


def main(argv: list[str]) -> int:
    """`python -m orchestrator.lab.hub FOLDER PORT`: serves until it is ended."""
    import uvicorn

    uvicorn.run(app(Path(argv[1])), host="127.0.0.1", port=int(argv[2]), log_level="warning", access_log=False)
    return 0


if __name__ == "__main__":
    import sys

    sys.exit(main(sys.argv))
