"""The routes of the page: each view and its `.json` twin, the assets, and the live stream."""

import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import aclosing
from functools import partial

import anyio
import orjson
import structlog
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import Receive, Scope, Send

from server.domain.agents import identity
from server.domain.errors import NotFound, Refusal
from server.http.event_stream import start_of
from server.http.responses import InPieces
from server.http.routes import PING_SECONDS, answering
from server.methods.base import CallSession, Context
from server.page import assets
from server.page.action_routes import action_routes
from server.page.guard import PageParts, guarded_page, secured
from server.page.live import Interest
from server.page.rendering import render
from server.page.sign_in import sign_in_routes
from server.page.view import Page, PageCall, View, url_of
from server.page.viewer import Viewer
from server.page.views import VIEWS
from server.rpc.answer_budget import AnswerShare
from server.store import changes

log = structlog.get_logger()

HOME = "attention"


def page_routes(parts: PageParts) -> list[Route]:
    """All routes of the page. A twin stands before its view, whose path would take it too."""
    home = VIEWS[HOME]
    return [
        Route("/", partial(_front, parts, home), methods=["GET"]),
        Route("/ui", partial(_html, parts, home)),
        Route("/ui/events", _events(parts)),
        Route(f"{assets.PREFIX}{{name}}", assets.serve),
        *sign_in_routes(parts),
        *action_routes(parts),
        *(Route(f"{view.path}.json", _twin(parts, view)) for view in VIEWS.values()),
        *(Route(view.path, partial(_html, parts, view)) for view in VIEWS.values()),
        Route("/ui/{rest:path}", partial(_nowhere, parts)),
    ]


async def _front(parts: PageParts, home: View, request: Request) -> Response:
    """The home page for a browser; for others the refusal of before."""
    if "text/html" not in request.headers.get("accept", ""):
        raise HTTPException(405, headers={"Allow": "POST"})
    return await _html(parts, home, request)


async def _html(parts: PageParts, view: View, request: Request) -> Response:
    return await guarded_page(parts, request, partial(_shown, parts, view, request))


async def _shown(parts: PageParts, view: View, request: Request, viewer: Viewer) -> Response:
    def make(ctx: Context) -> bytes:
        began = time.thread_time()
        page = view.load(_call(parts, request, viewer, ctx))
        text = render(
            view.template,
            now=ctx.stamp,
            page=page,
            view=view,
            viewer=viewer,
            path=url_of(view.name, **request.path_params),
            query=request.query_params,
            project_id=request.path_params.get("project_id"),
            seq=f"{parts.state.epoch}:{changes.newest(ctx.db)}",
            node=parts.state.node,
            header=parts.header.of(ctx),
        )
        parts.live.spent(view.name, time.thread_time() - began)
        return text.encode()

    return await _made(parts, viewer, view, make, "text/html")


def _twin(parts: PageParts, view: View) -> Callable[[Request], Awaitable[Response]]:
    async def twin(request: Request) -> Response:
        viewer = await parts.sessions.enter(request)

        def make(ctx: Context) -> bytes:
            page: Page = view.load(_call(parts, request, viewer, ctx))
            if view.name == HOME:
                page = {"header": parts.header.of(ctx), **page}
            return orjson.dumps(page)

        response = await _made(parts, viewer, view, make, "application/json")
        if viewer.cookie is not None:
            response.headers.append("set-cookie", viewer.cookie)
        return secured(response)

    return answering(twin)


def _call(parts: PageParts, request: Request, viewer: Viewer, ctx: Context) -> PageCall:
    query = {name: value for name, value in request.query_params.items() if value}
    return PageCall(ctx, viewer, parts.state, request.path_params, query)


class CountedPage(InPieces):
    """A page or twin. It counts as one of the node's unfinished answers until its reader took it,
    so that pages that nobody reads don't fill the memory."""

    def __init__(self, body: bytes, media_type: str, share: AnswerShare) -> None:
        super().__init__(body, media_type=media_type)
        share.add_unchecked(len(body))
        self._share = share

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._share.release()


async def _made(
    parts: PageParts, viewer: Viewer, view: View, make: Callable[[Context], bytes], kind: str
) -> Response:
    """What `make` makes of a look at the database. Raises Busy when the caller has left too many
    answers unread."""
    caller, budget = viewer.caller, parts.state.dispatcher.budget
    budget.check(caller.agent_id)
    async with parts.reading:
        body = await _session(parts, viewer, view).read_wide(make)
    return CountedPage(body, kind, budget.share(caller.agent_id))


def _session(parts: PageParts, viewer: Viewer, view: View) -> CallSession:
    state = parts.state
    return CallSession(
        state.database, viewer.caller, state.node, f"page/{view.name}", parts.stopping
    )


async def _nowhere(parts: PageParts, request: Request) -> Response:
    async def nothing(viewer: Viewer) -> Response:
        raise NotFound("There is no such page; the menu has those that there are", kind="page")

    return await guarded_page(parts, request, nothing)


def _events(parts: PageParts) -> Callable[[Request], Awaitable[Response]]:
    """The live stream of one open page: `changed` when it should look again."""

    async def stream(request: Request) -> Response:
        viewer = await parts.sessions.enter(request)
        state, query = parts.state, request.query_params
        view = VIEWS.get(query.get("view", ""))
        if view is None:
            raise NotFound("view: names no view of the page", kind="page")
        interest = Interest(view.kinds, query.get("project"), viewer.caller.projects)
        last = request.headers.get("last-event-id") or query.get("after")
        after = start_of(last, state.epoch, await state.database.read(changes.newest))
        agent = identity(viewer.caller.agent_id)
        parts.live.check_room(agent)
        stopping = anyio.Event()

        async def body() -> AsyncIterator[ServerSentEvent]:
            yield ServerSentEvent(comment="cacp page", retry=1000)
            async with aclosing(parts.live.follow(agent, interest, after, stopping)) as seqs:
                async for seq in seqs:
                    try:
                        await parts.sessions.recheck(request, viewer)
                    except Refusal as refusal:
                        # The page reconnects, gets the refusal, and shows it.
                        log.info("page_stream_ended", reason=refusal.data["reason"])
                        return
                    if seq is not None:
                        yield ServerSentEvent("{}", event="changed", id=f"{state.epoch}:{seq}")

        return EventSourceResponse(
            body(),
            headers=None if viewer.cookie is None else {"set-cookie": viewer.cookie},
            ping=PING_SECONDS,
            send_timeout=60,
            shutdown_event=stopping,
            shutdown_grace_period=state.settings.shutdown_seconds / 2,
        )

    return answering(stream)
