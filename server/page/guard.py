"""What all responses of the page have in common: their headers, who may see them, and how a refusal
looks."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from http import HTTPStatus
from urllib.parse import quote, urlencode

from starlette.requests import Request
from starlette.responses import HTMLResponse, RedirectResponse, Response

from server.domain.errors import Refusal, Unauthenticated
from server.domain.page_session import local_path
from server.http.body import Disconnected
from server.http.responses import refusal_response
from server.http.routes import AppState
from server.page.header import HeaderFacts
from server.page.live import LivePages
from server.page.rendering import render
from server.page.sessions import PageSessions
from server.page.viewer import Viewer
from server.store.storage import WIDE_READERS

SIGN_IN = "/ui/sign-in"
_MAY_SIGN_IN = frozenset({"no_credentials", "forwarded"})
"""The reasons for which a page leads to the sign-in form. A page of another site that reaches this
node by a name of its own stays refused."""
POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self' data:",
        "connect-src 'self'",
        "form-action 'self'",
        "frame-ancestors 'none'",
        "base-uri 'none'",
    )
)
HEADERS = {
    "content-security-policy": POLICY,
    "cache-control": "no-store",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # With "no-referrer" browsers would send `Origin: null` with the page's own forms.
    "referrer-policy": "same-origin",
    "x-content-type-options": "nosniff",
}


@dataclass(frozen=True, slots=True)
class PageParts:
    """What the routes of the page use."""

    state: AppState
    sessions: PageSessions
    live: LivePages
    header: HeaderFacts
    stopping: asyncio.Event
    reading: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(WIDE_READERS - 1))
    """Held while a page is made. A change may bring all open pages at once: they leave a reader to
    other callers."""


async def guarded_page(
    parts: PageParts, request: Request, show: Callable[[Viewer], Awaitable[Response]]
) -> Response:
    """What `show` answers a viewer who may come in; a refusal as a page, or the way to the sign-in
    form."""
    viewer = None
    try:
        viewer = await parts.sessions.enter(request)
        response = await show(viewer)
    except Disconnected:
        return Response(status_code=400)
    except Refusal as refusal:
        response = _to_sign_in(request, refusal) or _refused(parts, refusal, viewer)
    if viewer is not None and viewer.cookie is not None:
        response.headers.append("set-cookie", viewer.cookie)
    if viewer is not None and viewer.message is not None and request.method == "GET":
        response.headers.append("set-cookie", parts.sessions.cookies.without_message())
    return secured(response)


def secured(response: Response) -> Response:
    """A response with the headers that every page has."""
    response.headers.update(HEADERS)
    return response


def _to_sign_in(request: Request, refusal: Refusal) -> Response | None:
    """The way to the sign-in form and back, for a request that was refused for want of a session;
    else None."""
    if (
        request.method not in ("GET", "HEAD")
        or "authorization" in request.headers
        or not isinstance(refusal, Unauthenticated)
        or refusal.data["reason"] not in _MAY_SIGN_IN
    ):
        return None
    here = _here(request)
    if request.headers.get("sec-fetch-site") == "cross-site":
        # A link on another site brings no cookie that is SameSite=Strict: this page asks again.
        return HTMLResponse(render("again.html", now=0, to=here))
    return RedirectResponse(f"{SIGN_IN}?{urlencode({'next': here})}", 303)


def _here(request: Request) -> str:
    """The path and query of a request, as a form may lead back to them."""
    path, query = quote(request.url.path, safe="/!$&'()*+,;=:@-._~"), request.url.query
    return local_path(f"{path}?{query}" if query else path)


def _refused(parts: PageParts, refusal: Refusal, viewer: Viewer | None) -> Response:
    status, _, headers = refusal_response(refusal)
    text = render(
        "refused.html",
        now=parts.state.database.now(),
        refusal=refusal,
        status=status,
        phrase=HTTPStatus(status).phrase,
        viewer=viewer,
    )
    extra = {name.decode(): value.decode() for name, value in headers}
    return HTMLResponse(text, status, extra)
