"""The provider's HTTP face, market protocol version 1: read, bound, authenticate, ask the agent, answer.

No decision is taken here. A request about a rental proves its renter by an EIP-712 signature over method, path, body,
rental and time; there are no accounts and no cookies. A no is a problem document (RFC 9457) with a stable code.
"""
from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Protocol, TypeVar

from pydantic import ValidationError
from starlette.applications import Starlette
from starlette.concurrency import run_in_threadpool
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from ..domain.document import parse
from ..errors import SealtuneError, Transient
from ..marketplace.open_market.wire import INFO, OFFERS, QUOTES, Hint, OfferPage, QuoteOrder, Wire, first_fault
from .agent import Agent, Problem, log

MOST_BODY = 64 * 1024
SECONDS_TO_READ = 10
SECONDS_OF_VALIDITY = 300                # of a signed request, on either side of our clocks
MOST_NONCES = 10_000

W = TypeVar("W", bound=Wire)
Handler = Callable[[Request], Awaitable[Response]]


class Signed(Protocol):
    """A request as its renter signed it."""

    @property
    def rentalId(self) -> str: ...
    @property
    def issuedAt(self) -> int: ...
    @property
    def nonce(self) -> str: ...


Reader = Callable[[str, str, bytes, Mapping[str, str]], tuple[str, Signed]]


class Gate:
    """Who asks? `read` gives (address, what was signed) for method, path, body and headers, or raises ValueError."""

    def __init__(self, read: Reader, clocks: Callable[[], tuple[int, ...]]) -> None:
        self._read, self._clocks = read, clocks
        self._seen: dict[str, None] = {}

    def asker(self, method: str, path: str, body: bytes, headers: Mapping[str, str], rental_id: str) -> str:
        """The address that signed. Problem 401 for a request that proves nothing, is old, or was seen before."""
        try:
            address, signed = self._read(method, path, body, headers)
        except ValueError as problem:
            raise Problem(401, "unsigned", str(problem)) from problem
        if signed.rentalId.lower() != rental_id:
            raise Problem(401, "unsigned", "signed for another rental")
        if all(abs(now - signed.issuedAt) > SECONDS_OF_VALIDITY for now in self._clocks()):
            raise Problem(401, "stale", "signed too long ago, or by a clock that is off")
        if signed.nonce in self._seen:
            raise Problem(401, "stale", "this request was made before")
        self._seen[signed.nonce] = None
        if len(self._seen) > MOST_NONCES:
            self._seen.pop(next(iter(self._seen)))
        return address


def app(agent: Agent, read: Reader, clocks: Callable[[], tuple[int, ...]] = lambda: (int(time.time()),)) -> Starlette:
    """`clocks`: the present by every clock that a renter may reasonably go by."""
    face = Face(agent, Gate(read, clocks))
    return Starlette(
        routes=[
            Route(INFO, guarded(face.info), methods=["GET"]),
            Route(OFFERS, guarded(face.offers), methods=["GET"]),
            Route(QUOTES, guarded(face.quotes), methods=["POST"]),
            Route("/v1/rentals/{rental}", guarded(face.rental), methods=["GET"]),
            Route("/v1/rentals/{rental}", guarded(face.hint), methods=["PUT"]),
            Route("/v1/rentals/{rental}/end-hint", guarded(face.end_hint), methods=["POST"]),
        ],
        exception_handlers={HTTPException: no_such_thing},
    )


class Face:
    """One method a route. The agent blocks on the chain, so it is asked on a worker thread."""

    def __init__(self, agent: Agent, gate: Gate) -> None:
        self._agent, self._gate = agent, gate

    async def info(self, request: Request) -> Response:
        return said(await run_in_threadpool(self._agent.info))

    async def offers(self, request: Request) -> Response:
        return said(OfferPage(offers=await run_in_threadpool(self._agent.offers)))

    async def quotes(self, request: Request) -> Response:
        order = read_as(QuoteOrder, await body_of(request))
        return said(await run_in_threadpool(self._agent.quote, order))

    async def rental(self, request: Request) -> Response:
        asker, rental, _ = await self._asked(request)
        return said(await run_in_threadpool(self._agent.rental, asker, rental))

    async def hint(self, request: Request) -> Response:
        asker, rental, body = await self._asked(request)
        hint = read_as(Hint, body)
        return said(await run_in_threadpool(self._agent.hint, asker, rental, hint.ssh_public_key))

    async def end_hint(self, request: Request) -> Response:
        asker, rental, _ = await self._asked(request)
        return said(await run_in_threadpool(self._agent.end_hint, asker, rental))

    async def _asked(self, request: Request) -> tuple[str, str, bytes]:
        rental = str(request.path_params["rental"])
        if len(rental) != 66:
            raise Problem(404, "unknown-rental", "no such rental")
        body = await body_of(request)
        target = request.url.path + (f"?{request.url.query}" if request.url.query else "")
        asker = await run_in_threadpool(self._gate.asker, request.method, target, body, dict(request.headers), rental)
        return asker, rental, body


def guarded(handler: Handler) -> Handler:
    """A handler whose refusals become problem documents. A chain that is out of reach is 503: ask again."""

    async def answer(request: Request) -> Response:
        try:
            return await handler(request)
        except Problem as no:
            return problem(no.status, no.code, no.detail)
        except Transient as later:
            log.warning("%s", later)
            return problem(503, "try-again", "the chain does not answer the provider")
        except SealtuneError as failure:
            log.warning("%s", failure)
            return problem(500, "failed", "the provider cannot do that now")

    return answer


async def body_of(request: Request) -> bytes:
    """The body, up to MOST_BODY bytes and SECONDS_TO_READ seconds."""
    data = bytearray()
    try:
        async with asyncio.timeout(SECONDS_TO_READ):
            async for chunk in request.stream():
                data += chunk
                if len(data) > MOST_BODY:
                    raise Problem(413, "too-large", f"more than {MOST_BODY} bytes")
    except TimeoutError:
        raise Problem(408, "too-slow", f"the body took more than {SECONDS_TO_READ} seconds") from None
    return bytes(data)


def read_as(model: type[W], body: bytes) -> W:
    try:
        return model.model_validate(parse(body))
    except ValidationError as fault:
        raise Problem(422, "malformed", first_fault(fault)) from None
    except ValueError as fault:
        raise Problem(400, "malformed", "not JSON as agreed") from fault


def said(answer: Wire) -> Response:
    return JSONResponse(answer.model_dump(), headers={"cache-control": "no-store"})


def problem(status: int, code: str, detail: str) -> Response:
    return JSONResponse({"type": "about:blank", "status": status, "code": code, "detail": detail[:200]},
                        status_code=status, media_type="application/problem+json")


async def no_such_thing(request: Request, no: Exception) -> Response:
    status = no.status_code if isinstance(no, HTTPException) else 500
    return problem(status, "unknown-path" if status == 404 else "refused", "")
