"""The routes by which somebody signs in to the page and out of it."""

from functools import partial

import orjson
from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response
from starlette.routing import Route

from schemas.base import iso
from server.domain.errors import (
    InvalidInput,
    InvalidRequest,
    Refusal,
    Unauthenticated,
)
from server.domain.page_session import local_path
from server.http.body import read_body
from server.http.responses import STATUS
from server.http.routes import answering, json_response
from server.page.forms import FORM_LIMIT, read_form
from server.page.guard import SIGN_IN, PageParts, secured
from server.page.rendering import render

SIGN_OUT = "/ui/sign-out"
ENTER = "/ui/enter"
LINKS = "/ui/links"


def sign_in_routes(parts: PageParts) -> list[Route]:
    """The routes of this module."""
    return [
        Route(SIGN_IN, partial(_form, parts), methods=["GET"]),
        Route(SIGN_IN, partial(_sign_in, parts), methods=["POST"]),
        Route(SIGN_OUT, partial(_sign_out, parts), methods=["POST"]),
        Route(ENTER, partial(_enter, parts), methods=["GET"]),
        Route(ENTER, answering(partial(_open_link, parts)), methods=["POST"]),
        Route(LINKS, answering(partial(_make_link, parts)), methods=["POST"]),
    ]


async def _form(parts: PageParts, request: Request) -> Response:
    return _sign_in_page(parts, request.query_params.get("next"))


async def _sign_in(parts: PageParts, request: Request) -> Response:
    fields: dict[str, str] = {}
    try:
        fields = await read_form(request)
        key = fields.get("key", "").strip()
        if not key:
            raise InvalidInput("Give a key; `cacp keys create` makes one")
        cookie = await parts.sessions.sign_in(request, key)
    except Refusal as refusal:
        return _sign_in_page(parts, fields.get("next"), refusal)
    response = RedirectResponse(local_path(fields.get("next")), 303)
    response.headers.append("set-cookie", cookie)
    return secured(response)


async def _sign_out(parts: PageParts, request: Request) -> Response:
    try:
        viewer = await parts.sessions.enter(request)
        fields = await parts.sessions.form_of(request, viewer)
        everywhere = fields.get("everywhere") == "1"
        cookie = await parts.sessions.sign_out(request, viewer, everywhere=everywhere)
    except Refusal as refusal:
        return _sign_in_page(parts, None, refusal)
    response = RedirectResponse(SIGN_IN, 303)
    response.headers.append("set-cookie", cookie)
    return secured(response)


async def _enter(parts: PageParts, request: Request) -> Response:
    """The page of a one-time link. The code is in the fragment, which no server and no log sees;
    the page's script sends it."""
    return secured(HTMLResponse(render("enter.html", now=0, sign_in=SIGN_IN)))


async def _open_link(parts: PageParts, request: Request) -> Response:
    fields = await read_form(request)
    cookie = await parts.sessions.open_link(request, fields.get("code", ""))
    response = json_response({"next": local_path(fields.get("next"))})
    response.headers.append("set-cookie", cookie)
    return response


async def _make_link(parts: PageParts, request: Request) -> Response:
    """A code for the caller's key. A cookie does not count here."""
    body = await read_body(request.receive, dict(request.scope["headers"]), FORM_LIMIT)
    if body.strip() not in (b"", b"{}"):
        raise InvalidRequest("POST /ui/links takes no params: send {} or nothing")
    link = await parts.sessions.make_link(request)
    answer = {"code": link.code, "path": ENTER, "expiresAt": iso(link.expires_at)}
    return json_response(orjson.dumps(answer), headers={"cache-control": "no-store"})


def _sign_in_page(parts: PageParts, to: str | None, refusal: Refusal | None = None) -> Response:
    status = 200 if refusal is None else STATUS.get(type(refusal), 400)
    text = render(
        "sign_in.html",
        now=parts.state.database.now(),
        next=local_path(to),
        problem=None if refusal is None else _problem(refusal),
        local=parts.state.settings.is_local,
        is_plain=not parts.state.settings.is_local and not parts.sessions.cookies.is_secure,
        node=parts.state.node,
    )
    return secured(HTMLResponse(text, status))


def _problem(refusal: Refusal) -> str:
    if isinstance(refusal, Unauthenticated):
        return {
            "malformed_key": "That is not a key: it begins with cacp_sk_",
            "unknown_key": "This node does not know that key",
            "revoked_key": "That key is revoked",
        }.get(refusal.data["reason"], refusal.message)
    return refusal.message
