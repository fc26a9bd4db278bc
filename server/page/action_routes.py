"""`POST /ui/actions/NAME`: a form becomes a call of a method, as that person would make it."""

from collections.abc import Mapping
from functools import partial
from typing import Any

import orjson
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from server.cluster.shared_values import SharedValues
from server.domain.agents import identity
from server.domain.errors import Forbidden, NotFound, Refusal
from server.domain.page_session import local_path
from server.http.rpc_endpoint import idempotency_key
from server.page.actions import ACTIONS, PageAction, Params
from server.page.guard import PageParts, guarded_page
from server.page.nudges import Nudges
from server.page.viewer import PageMessage, Viewer
from server.rpc.dispatch import RequestContext

_PREFIX = "Invalid params: "
"""What JSON-RPC puts before some refusals; a person did not write params."""


def action_routes(parts: PageParts) -> list[Route]:
    """The route of all actions."""
    nudges = Nudges(SharedValues(parts.state.database, "nudge"))
    return [Route("/ui/actions/{name}", partial(_act, parts, nudges), methods=["POST"])]


async def _act(parts: PageParts, nudges: Nudges, request: Request) -> Response:
    return await guarded_page(parts, request, partial(_acted, parts, nudges, request))


async def _acted(parts: PageParts, nudges: Nudges, request: Request, viewer: Viewer) -> Response:
    """Back to the page from which the form came, with what was done or why not."""
    fields = await parts.sessions.form_of(request, viewer)
    assert viewer.csrf is not None
    action = ACTIONS.get(request.path_params["name"])
    if action is None:
        raise NotFound("There is no such action", kind="action")
    if not viewer.may_act:
        raise Forbidden(
            "You are signed in with an agent's key, and only people act on the page: sign in with "
            "a key that was made by `cacp keys create --human`",
            reason="not_human",
        )
    try:
        message = await _called(parts, nudges, action, request, viewer, fields)
    except Refusal as refusal:
        message = PageMessage("bad", refusal.message)
    to = local_path(fields.get("next"))
    response = RedirectResponse(to, 303)
    response.headers.append(
        "set-cookie", parts.sessions.cookies.with_message(message, to, viewer.csrf)
    )
    return response


async def _called(
    parts: PageParts,
    nudges: Nudges,
    action: PageAction,
    request: Request,
    viewer: Viewer,
    fields: Mapping[str, str],
) -> PageMessage:
    """The outcome of an action. Raises what the form's fields are refused for."""
    params = action.params(fields)
    if action.name != "nudge":
        return await _outcome(parts, action, request, viewer, fields, params)
    about = identity(params["to"][0]), fields.get("item") or params["payload"]["summary"]
    await nudges.note(*about, fields.get("once", ""))
    message = await _outcome(parts, action, request, viewer, fields, params)
    if message.kind == "bad":
        await nudges.forget(*about)
    return message


async def _outcome(
    parts: PageParts,
    action: PageAction,
    request: Request,
    viewer: Viewer,
    fields: Mapping[str, str],
    params: Params,
) -> PageMessage:
    call = {"jsonrpc": "2.0", "method": action.method, "params": params, "id": 1}
    body, once = orjson.dumps(call), fields.get("once")
    state = parts.state
    context = RequestContext(
        viewer.caller,
        # A double click is one call.
        idempotency_key=idempotency_key(once.encode()) if once else None,
        body_size=len(body),
        body_limit=state.settings.body_limit,
        charge=partial(state.admission.charge, viewer.caller),
        recheck_access=partial(parts.sessions.recheck, request, viewer),
    )
    try:
        answer = await state.dispatcher.answer(body, context)
        return _shown(action, answer)
    finally:
        if context.share is not None:
            context.share.release()


def _shown(action: PageAction, answer: bytes | list[bytes] | None) -> PageMessage:
    assert answer is not None
    given: Any = orjson.loads(answer if isinstance(answer, bytes) else b"".join(answer))
    if "error" in given:
        return PageMessage("bad", str(given["error"]["message"]).removeprefix(_PREFIX))
    return PageMessage("good", action.done(given["result"]))
