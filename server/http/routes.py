"""All routes but `POST /`, `/mcp` and ADP's: discovery, health, peers, metrics, events (CACP 2.0,
Discovery)."""

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
from schemas.errors import ErrorCode
from schemas.mesh import Confirm, Hello
from schemas.sync import AnnounceParams
from server.auth.authenticator import Caller
from server.cluster.member import ClusterMember
from server.domain.access import Access, check_project, check_trust, check_unrestricted
from server.domain.errors import RateLimited, Refusal
from server.domain.invalid import invalid_input
from server.http import agent_card, attention_stream, event_stream, mail_stream, metrics
from server.http.admission import Admission, address_of
from server.http.body import Disconnected, is_json, read_body
from server.http.connections import Connections
from server.http.event_stream import Filter
from server.http.health import HealthCheck
from server.http.metrics import Metrics
from server.http.responses import InPieces, refusal_response
from server.mesh.handshake_server import HandshakeServer
from server.mesh.peer_status import verdict_of
from server.mesh.supervisor import Supervisor
from server.methods import METHODS, openrpc
from server.methods.base import CallSession, Context, open_project
from server.methods.sync import registration
from server.node import Node
from server.rpc.dispatch import Dispatcher
from server.settings import Settings
from server.store import changes, digests, peers
from server.store.database import Database
from server.util.cached_document import CachedDocument
from server.util.log_once import RateLimitedLog
from server.workers.content_audit import ContentAudit
from server.workers.push_worker import PushWorker

log = structlog.get_logger()

PING_SECONDS = 15
STREAM_RETRY_SECONDS = 5
REGISTER_LIMIT = 64 * 1024

M = TypeVar("M", bound=BaseModel)
Handler = Callable[[Request], Awaitable[Response]]


@dataclass(slots=True)
class AppState:
    """The parts of the node that its routes use."""

    settings: Settings
    database: Database
    dispatcher: Dispatcher
    admission: Admission
    notices: RateLimitedLog
    checkup: HealthCheck
    metrics: Metrics
    node: Node
    epoch: str
    mesh: Supervisor
    handshakes: HandshakeServer
    connections: Connections
    audit: ContentAudit
    push_worker: PushWorker
    cluster: ClusterMember
    streams: Counter[str] = field(default_factory=Counter)
    """Open event streams of each caller."""


def routes(state: AppState) -> list[Route]:
    """The routes. The unguarded ones are public (design §6)."""
    return [
        *_documents(state.settings),
        Route("/health", partial(_health, state)),
        Route("/live", _live),
        Route("/ready", partial(_ready, state)),
        Route("/mesh", guarded(state, _mesh)),
        Route("/peers", guarded(state, _peers)),
        Route(
            "/peers/register",
            guarded(state, _register, wanted="sync", registers=True),
            methods=["POST"],
        ),
        Route("/peers/hello", answering(partial(_hello, state)), methods=["POST"]),
        Route("/peers/confirm", answering(partial(_confirm, state)), methods=["POST"]),
        Route("/metrics", guarded(state, _metrics)),
        Route("/events", guarded(state, _events, by_project=True)),
    ]


def _documents(settings: Settings) -> list[Route]:
    """The routes of documents that never change while the node runs."""
    own_card = orjson.dumps(agent_card.card(settings))
    names = orjson.dumps({"methods": list(METHODS)})
    described, openrpc_document = CachedDocument(openrpc.verbose), CachedDocument(openrpc.document)

    async def own_agent_card(request: Request) -> Response:
        return json_response(own_card)

    async def methods(request: Request) -> Response:
        if request.query_params.get("verbose") not in (None, "", "0", "false"):
            return json_response(await described.get())
        return json_response(names)

    async def discover(request: Request) -> Response:
        return json_response(await openrpc_document.get())

    return [
        Route("/.well-known/agent.json", own_agent_card),
        Route("/.well-known/agent-card.json", own_agent_card),
        Route("/methods", methods),
        Route("/openrpc.json", discover),
    ]


GuardedHandler = Callable[[AppState, Request, Caller], Awaitable[Response]]


def guarded(
    state: AppState,
    handler: GuardedHandler,
    *,
    wanted: Access = "read",
    registers: bool = False,
    by_project: bool = False,
) -> Handler:
    """Admit only callers with the `wanted` access, and answer refusals.

    A caller whose key or token is limited to some projects is admitted only to a handler that
    filters by project (`by_project`).
    """

    async def handle(request: Request) -> Response:
        _, caller = await state.admission.enter(request.scope, registers=registers)
        check_trust(caller.trust, wanted, is_own=caller.is_own_agent)
        if not by_project:
            check_unrestricted(caller.projects)
        return await handler(state, request, caller)

    return answering(handle)


def answering(handler: Handler) -> Handler:
    """Turn a handler's refusals into responses."""

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
    """The request's Content-Type is not JSON."""


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


async def _live(request: Request) -> Response:
    return json_response(b'{"status":"live"}')


async def _ready(state: AppState, request: Request) -> Response:
    health = await state.checkup.examine()
    if health.status == "unhealthy":
        return json_response({"status": "unready", "reason": health.reason}, 503)
    return json_response({"status": "ready"})


async def _health(state: AppState, request: Request) -> Response:
    health = await state.checkup.examine()
    body = {
        "status": health.status,
        "agentId": state.settings.agent,
        "repo": state.settings.repo,
        "peerCount": await _peer_count(state) if health.status != "unhealthy" else 0,
        "version": agent_card.VERSION,
        "mail": state.node.acp.capabilities,
    }
    if health.reason is not None:
        body["reason"] = health.reason
    if health.detail is not None:
        body["detail"] = health.detail
    return json_response(body, 503 if health.status == "unhealthy" else 200)


async def _peers(state: AppState, request: Request, caller: Caller) -> Response:
    """The peers, and whether the nodes of the mesh hold the same."""
    status = state.mesh.status
    listed = await state.database.read(status.peers)
    verdict = verdict_of(await state.database.read(status.equality))
    return json_response({"peers": listed, "mesh": verdict})


async def _mesh(state: AppState, request: Request, caller: Caller) -> Response:
    """The digest of all content, which is the same on nodes with the same content."""
    await state.database.write(lambda to: digests.catch_up(to.connection))
    return json_response(await state.database.read_wide(state.mesh.status.holdings))


async def _hello(state: AppState, request: Request) -> Response:
    """The first message of a handshake, in which the sender proves its identity."""
    await state.admission.check_stranger(request.scope)
    with _logged(state, request):
        welcome = await state.handshakes.hello(await read_model(request, Hello, REGISTER_LIMIT))
    return json_response(welcome.model_dump_json(by_alias=True).encode())


async def _confirm(state: AppState, request: Request) -> Response:
    await state.admission.check_stranger(request.scope)
    with _logged(state, request):
        confirm = await read_model(request, Confirm, REGISTER_LIMIT)
        confirmed = await state.handshakes.confirm(confirm)
    return json_response(confirmed.model_dump_json(by_alias=True).encode())


async def _register(state: AppState, request: Request, caller: Caller) -> Response:
    session = CallSession(state.database, caller, state.node, "peers/register", asyncio.Event())
    with _logged(state, request):
        params = await read_model(request, AnnounceParams, REGISTER_LIMIT)
        return json_response(await registration.register(session, params))


@contextmanager
def _logged(state: AppState, request: Request) -> Iterator[None]:
    """Log a refused registration, once for each reason and address."""
    try:
        yield
    except Refusal as refusal:
        reason, address = refusal.data["reason"], address_of(request.scope)
        state.notices.refused(
            "registration_refused",
            (reason, address),
            reason=reason,
            address=address,
            said=refusal.message,
        )
        raise


async def _metrics(state: AppState, request: Request, caller: Caller) -> Response:
    return Response(await state.metrics.text(state.database.read), media_type=metrics.CONTENT_TYPE)


async def _events(state: AppState, request: Request, caller: Caller) -> Response:
    _check_streams(state, caller)
    last = request.headers.get("last-event-id") or request.query_params.get("after")
    recheck_access = partial(state.admission.recheck_access, request.scope, caller)
    stopping = anyio.Event()
    if request.query_params.get("kind") == event_stream.MAIL:
        check_trust(caller.trust, "write")
        session = CallSession(state.database, caller, state.node, "/events", asyncio.Event())
        address = await mail_stream.begin(session, last)
        source = mail_stream.stream(session, address, recheck_access, stopping)
    elif request.query_params.get("kind") == event_stream.ATTENTION:
        session = CallSession(state.database, caller, state.node, "/events", asyncio.Event())
        known = attention_stream.last_state(last, state.epoch)
        begun = await attention_stream.begin(session, await _project(state, request, caller))
        source = attention_stream.stream(
            session, state.epoch, begun, known, recheck_access, stopping
        )
    else:
        chosen, after = await _changes(state, request, caller, last)
        source = event_stream.stream(
            state.database, state.epoch, after, chosen, recheck_access, stopping
        )

    async def body() -> AsyncIterator[ServerSentEvent]:
        state.streams[caller.agent_id] += 1
        try:
            yield ServerSentEvent(comment="cacp changes", retry=STREAM_RETRY_SECONDS * 1000)
            async for event in source:
                yield event
        except Refusal as refusal:
            # The client reconnects, and then gets the refusal.
            log.info("stream_ended", reason=refusal.data["reason"], agent=caller.agent_id)
        finally:
            state.streams[caller.agent_id] -= 1
            # Drops the counts that are zero.
            state.streams += Counter()

    return EventSourceResponse(
        body(),
        ping=PING_SECONDS,
        send_timeout=60,
        shutdown_event=stopping,
        shutdown_grace_period=state.settings.shutdown_seconds / 2,
    )


def _check_streams(state: AppState, caller: Caller) -> None:
    """Raise RateLimited when the caller or the node has its maximum of open event streams."""
    settings = state.settings
    for subject, count, most in (
        ("You have", state.streams[caller.agent_id], settings.event_streams_per_caller),
        ("The node has", state.streams.total(), settings.event_streams),
    ):
        if count >= most:
            raise RateLimited(
                f"{subject} {count} open event streams, which is the limit: close one", retryAfter=5
            )


async def _changes(
    state: AppState, request: Request, caller: Caller, last: str | None
) -> tuple[Filter, int]:
    """The filter that the query asks for, and the seq of the change to continue after."""
    kinds = event_stream.kinds_of(request.query_params.get("kind"), caller)
    chosen = Filter(await _project(state, request, caller), kinds, caller)
    return chosen, event_stream.start_of(
        last, state.epoch, await state.database.read(changes.newest)
    )


async def _project(state: AppState, request: Request, caller: Caller) -> str | None:
    """The project that the query names, which the caller may read. Raises NotFound."""
    project = request.query_params.get("project")
    if project is not None:
        check_project(caller.projects, project)
        context = partial(Context, caller=caller, node=state.node, method="/events", stamp=0)
        await state.database.read(lambda db: open_project(context(db), project))
    return project


async def no_route(request: Request, error: Exception) -> Response:
    """404 and 405."""
    assert isinstance(error, HTTPException)
    allowed = (error.headers or {}).get("Allow")
    path = request.url.path[:200]
    if allowed:
        reason, message = "wrong_http_method", f"{path} accepts {allowed}, not {request.method}"
    else:
        reason, message = "unknown_path", f"{path} does not exist; see GET /methods"
    body = jsonrpc.error(ErrorCode.INVALID_REQUEST, message, {"reason": reason})
    return json_response(body, error.status_code, dict(error.headers or {}))


async def _peer_count(state: AppState) -> int:
    try:
        return await state.database.read(peers.count)
    except Refusal:
        return 0


def json_response(
    body: object, status: int = 200, headers: dict[str, str] | None = None
) -> Response:
    content = body if isinstance(body, bytes) else orjson.dumps(body)
    return InPieces(content, status, headers, media_type="application/json")
