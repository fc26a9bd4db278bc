"""Everything beside POST /: discovery, health, peers, metrics, events (CACP 2.0, Discovery)."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import TypeVar

import anyio
import orjson
import structlog
from pydantic import BaseModel, ValidationError
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from schemas import jsonrpc
from schemas.base import present
from schemas.errors import ErrorCode
from schemas.mesh import Confirm, Hello
from schemas.sync import AnnounceParams
from server.auth.authenticator import Caller
from server.domain.access import Access, check, check_project, check_whole
from server.domain.agents import identity
from server.domain.errors import RateLimited, Refusal
from server.domain.invalid import invalid_input
from server.http import agent_card, event_stream, mail_stream, metrics
from server.http.event_stream import Filter
from server.http.health import HealthCheck
from server.http.metrics import Metrics
from server.http.rpc_endpoint import (
    Admission,
    Disconnected,
    InPieces,
    address_of,
    is_json,
    read_body,
    refusal_response,
)
from server.mesh.handshake_server import HandshakeServer
from server.mesh.supervisor import Supervisor
from server.methods import METHODS, openrpc
from server.methods.base import Context, Session, open_project
from server.methods.sync import registration
from server.node import Node
from server.rpc.dispatch import Dispatcher
from server.settings import Settings
from server.store import changes, digests, equivocations, peers
from server.store.database import Database
from server.util.fixed_documents import Document
from server.util.log_once import LogOnce

log = structlog.get_logger()

PING_SECONDS = 15
STREAM_RETRY_SECONDS = 5
REGISTER_LIMIT = 64 * 1024

M = TypeVar("M", bound=BaseModel)
Handler = Callable[[Request], Awaitable[Response]]


@dataclass(slots=True)
class Site:
    """What the routes work with."""

    settings: Settings
    database: Database
    dispatcher: Dispatcher
    gate: Admission
    notices: LogOnce
    checkup: HealthCheck
    metrics: Metrics
    node: Node
    epoch: str
    mesh: Supervisor
    handshakes: HandshakeServer
    streams: Counter[str] = field(default_factory=Counter)
    """Open event streams of each caller."""


def routes(site: Site) -> list[Route]:
    """The routes; the public ones are those that design §6 names."""
    own_card = orjson.dumps(agent_card.card(site.settings))
    names = orjson.dumps({"methods": list(METHODS)})
    described, openrpc_document = Document(openrpc.verbose), Document(openrpc.document)

    async def own_agent_card(request: Request) -> Response:
        return json_response(own_card)

    async def live(request: Request) -> Response:
        return json_response(b'{"status":"live"}')

    async def ready(request: Request) -> Response:
        health = await site.checkup.examine()
        if health.status == "unhealthy":
            return json_response({"status": "unready", "reason": health.reason}, 503)
        return json_response({"status": "ready"})

    async def health(request: Request) -> Response:
        found = await site.checkup.examine()
        body = {
            "status": found.status,
            "agentId": site.settings.agent,
            "repo": site.settings.repo,
            "peerCount": _peer_count(site) if found.status != "unhealthy" else 0,
            "version": agent_card.VERSION,
            "mail": site.node.acp.capabilities,
        }
        if found.reason is not None:
            body["reason"] = found.reason
        if found.detail is not None:
            body["detail"] = found.detail
        return json_response(body, 503 if found.status == "unhealthy" else 200)

    async def methods(request: Request) -> Response:
        if request.query_params.get("verbose") not in (None, "", "0", "false"):
            return json_response(await described.get())
        return json_response(names)

    async def discover(request: Request) -> Response:
        return json_response(await openrpc_document.get())

    return [
        Route("/.well-known/agent.json", own_agent_card),
        Route("/.well-known/agent-card.json", own_agent_card),
        Route("/health", health),
        Route("/live", live),
        Route("/ready", ready),
        Route("/methods", methods),
        Route("/openrpc.json", discover),
        Route("/mesh", guarded(site, _mesh)),
        Route("/peers", guarded(site, _peers)),
        Route(
            "/peers/register",
            guarded(site, _register, wanted="sync", registers=True),
            methods=["POST"],
        ),
        Route("/peers/hello", answering(partial(_hello, site)), methods=["POST"]),
        Route("/peers/confirm", answering(partial(_confirm, site)), methods=["POST"]),
        Route("/metrics", guarded(site, _metrics)),
        Route("/events", guarded(site, _events, by_project=True)),
    ]


GuardedHandler = Callable[[Site, Request, Caller], Awaitable[Response]]


def guarded(
    site: Site,
    handler: GuardedHandler,
    *,
    wanted: Access = "read",
    registers: bool = False,
    by_project: bool = False,
) -> Handler:
    """Let only callers in that may do this, and answer refusals. Whose key or token is for some
    projects is let in only where the handler shows each project by itself (`by_project`)."""

    async def handle(request: Request) -> Response:
        _, caller = site.gate.enter(request.scope, registers=registers)
        check(caller.trust, wanted, is_own=caller.via == "local")
        if not by_project:
            check_whole(caller.projects)
        return await handler(site, request, caller)

    return answering(handle)


def answering(handler: Handler) -> Handler:
    """Answer what the handler refuses."""

    async def handle(request: Request) -> Response:
        try:
            return await handler(request)
        except NotJson:
            return json_response({"error": "Send Content-Type: application/json"}, 415)
        except Disconnected:
            return Response(status_code=400)
        except Refusal as refusal:
            status, body, extra = refusal_response(refusal)
            headers = {name.decode(): value.decode() for name, value in extra}
            return json_response(body, status, headers)

    return handle


class NotJson(Exception):
    """The body is of another type."""


async def read_model(request: Request, model: type[M], limit: int) -> M:
    """The body as a model. Raises NotJson, TooLarge over `limit` bytes, InvalidInput."""
    headers = dict(request.scope["headers"])
    if not is_json(headers.get(b"content-type")):
        raise NotJson
    body = await read_body(request.receive, headers, limit)
    try:
        return model.model_validate_json(body)
    except ValidationError as error:
        raise invalid_input(error) from None


async def _peers(site: Site, request: Request, caller: Caller) -> Response:
    found = site.database.read(peers.every)
    ahead = site.mesh.clocks_ahead()
    said_twice = site.database.read(equivocations.counts)
    states = [
        registration.describe(one)
        | present(
            {
                "sync": site.mesh.state(one),
                "clockAheadSeconds": ahead.get(one.agent_id),
                "equivocations": said_twice.get(identity(one.agent_id)),
            }
        )
        for one in found
    ]
    return json_response({"peers": states})


async def _mesh(site: Site, request: Request, caller: Caller) -> Response:
    """What this node holds, in one digest that equals that of nodes that hold the same."""
    counted = await site.database.write(lambda one: digests.catch_up(one.connection))
    held = await site.database.read_wide(digests.held)
    trouble = site.database.time_trouble(str)
    body = {
        "agentId": site.settings.agent,
        "repo": site.settings.repo,
        "digest": held.digest,
        "behind": not counted,
        "projects": held.projects,
        "contracts": held.contracts,
        "packets": held.packets,
        "files": held.files,
        "conflicts": held.conflicts,
        "deferred": held.deferred,
        "clockCorrectionSeconds": site.mesh.clock_correction(),
        "clockTrouble": trouble and trouble._asdict(),
    }
    return json_response(present(body))


async def _hello(site: Site, request: Request) -> Response:
    """A handshake's message: whoever sends it proves in it who it is."""
    site.gate.check_stranger(request.scope)
    with _named(site, request):
        welcome = await site.handshakes.hello(await read_model(request, Hello, REGISTER_LIMIT))
    return json_response(welcome.model_dump_json(by_alias=True).encode())


async def _confirm(site: Site, request: Request) -> Response:
    site.gate.check_stranger(request.scope)
    with _named(site, request):
        confirm = await read_model(request, Confirm, REGISTER_LIMIT)
        confirmed = await site.handshakes.confirm(confirm)
    return json_response(confirmed.model_dump_json(by_alias=True).encode())


async def _register(site: Site, request: Request, caller: Caller) -> Response:
    session = Session(site.database, caller, site.node, "peers/register", asyncio.Event())
    with _named(site, request):
        params = await read_model(request, AnnounceParams, REGISTER_LIMIT)
        return json_response(await registration.register(session, params))


@contextmanager
def _named(site: Site, request: Request) -> Iterator[None]:
    """Name in the log, once for each reason and address, who could not register."""
    try:
        yield
    except Refusal as refusal:
        reason, address = refusal.data["reason"], address_of(request.scope)
        site.notices.refused(
            "registration_refused",
            (reason, address),
            reason=reason,
            address=address,
            said=refusal.message,
        )
        raise


async def _metrics(site: Site, request: Request, caller: Caller) -> Response:
    return Response(site.metrics.text(), media_type=metrics.CONTENT_TYPE)


async def _events(site: Site, request: Request, caller: Caller) -> Response:
    _check_streams(site, caller)
    last = request.headers.get("last-event-id") or request.query_params.get("after")
    check_still = partial(site.gate.check_still, request.scope, caller)
    stopping = anyio.Event()
    if request.query_params.get("kind") == mail_stream.KIND:
        check(caller.trust, "write")
        session = Session(site.database, caller, site.node, "/events", asyncio.Event())
        address = await mail_stream.begin(session, last)
        source = mail_stream.stream(session, address, check_still, stopping)
    else:
        chosen, after = _changes(site, request, caller, last)
        source = event_stream.stream(
            site.database, site.epoch, after, chosen, check_still, stopping
        )

    async def body() -> AsyncIterator[ServerSentEvent]:
        site.streams[caller.agent_id] += 1
        try:
            yield ServerSentEvent(comment="cacp changes", retry=STREAM_RETRY_SECONDS * 1000)
            async for event in source:
                yield event
        except Refusal as refusal:
            # The caller comes back, and is told why.
            log.info("stream ended", reason=refusal.data["reason"], agent=caller.agent_id)
        finally:
            site.streams[caller.agent_id] -= 1
            # Who has none any more is not remembered.
            site.streams += Counter()

    return EventSourceResponse(
        body(),
        ping=PING_SECONDS,
        send_timeout=60,
        shutdown_event=stopping,
        shutdown_grace_period=site.settings.shutdown_seconds / 2,
    )


def _check_streams(site: Site, caller: Caller) -> None:
    """Raise RateLimited when the node, or the caller, has as many open event streams as it may."""
    settings = site.settings
    for whose, count, most in (
        ("You have", site.streams[caller.agent_id], settings.event_streams_per_caller),
        ("The node has", site.streams.total(), settings.event_streams),
    ):
        if count >= most:
            raise RateLimited(
                f"{whose} {count} open event streams, which is the limit: close one", retryAfter=5
            )


def _changes(site: Site, request: Request, caller: Caller, last: str | None) -> tuple[Filter, int]:
    """Which changes are asked for, and the one to go on after."""
    project = request.query_params.get("project")
    chosen = Filter(
        project, event_stream.kinds_of(request.query_params.get("kind"), caller), caller
    )
    if project is not None:
        check_project(caller.projects, project)
        context = partial(Context, caller=caller, node=site.node, method="/events", stamp=0)
        site.database.read(lambda db: open_project(context(db), project))
    return chosen, event_stream.start_of(last, site.epoch, site.database.read(changes.newest))


async def no_route(request: Request, error: Exception) -> Response:
    """404 and 405."""
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow")
    said = f"This path takes {allowed}" if allowed else "There is nothing at this path"
    body = jsonrpc.error(ErrorCode.INVALID_REQUEST, said)
    return json_response(body, error.status_code, dict(error.headers or {}))


def _peer_count(site: Site) -> int:
    try:
        return site.database.read(peers.count)
    except Refusal:
        return 0


def json_response(
    body: object, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    return InPieces(content, status, headers, media_type="application/json")
