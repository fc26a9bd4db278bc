"""A model's API over HTTP, on loopback only: Anthropic's, OpenAI's and Gemini's formats.

What it answers is a function: a script for `cacp comply model`, anything else for tests.
"""

import asyncio
import json
import socket
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import count

import uvicorn
from pydantic import JsonValue
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route
from starlette.types import ASGIApp, Receive, Scope, Send

from comply.model import anthropic, chat, gemini, responses
from comply.model.conversation import BadRequest, Event, Format, ModelAnswer, ModelRequest
from schemas.jsont import JsonObject

HOST = "127.0.0.1"
NAMES = frozenset({HOST, "localhost"})
SHOWN = 500
"""The most characters of a text in the log."""
ROUTES = (
    "POST /v1/messages and /v1/messages/count_tokens (Anthropic)",
    "POST /v1/chat/completions and /v1/responses, GET /v1/models (OpenAI)",
    "POST /v1beta/models/MODEL:generateContent, :streamGenerateContent and :countTokens (Gemini)",
)
Log = Callable[[JsonObject], None]
Reply = Callable[[ModelRequest], ModelAnswer]


@dataclass(frozen=True, slots=True)
class ScriptedModel:
    """Answers each request with `reply`, and logs request and answer."""

    reply: Reply
    log: Log
    numbers: Iterator[int]
    bodies: bool = False
    """Whether the log includes each request's body."""

    async def answer(self, request: Request, format: Format, **path: object) -> Response:
        """`path` has the fields that a format puts into the URL instead of the body."""
        body = await request.body()
        try:
            asked = replace(format.asked(body), **path)  # type: ignore[arg-type]
        except BadRequest as problem:
            return self.refuse(request, 400, str(problem))
        reply = self.reply(asked)
        whole = {"body": json.loads(body)} if self.bodies else {}
        self.log(_line(request, 200) | _heard(asked) | _said(reply) | whole)
        id = f"comply-{next(self.numbers)}"
        if asked.stream:
            stream = _stream(format.events(asked, reply, id), reply.wait)
            return StreamingResponse(stream, media_type="text/event-stream")
        await asyncio.sleep(reply.wait)
        return JSONResponse(format.whole(asked, reply, id))

    async def messages(self, request: Request) -> Response:
        return await self.answer(request, anthropic)

    async def chat(self, request: Request) -> Response:
        return await self.answer(request, chat)

    async def responses(self, request: Request) -> Response:
        return await self.answer(request, responses)

    async def generate(self, request: Request) -> Response:
        name, _, method = request.path_params["call"].partition(":")
        if method == "countTokens":
            return await self.count(request, gemini.tokens)
        if method not in ("generateContent", "streamGenerateContent"):
            return await self.unknown(request, None)
        return await self.answer(request, gemini, model=name, stream=method.startswith("stream"))

    async def tokens(self, request: Request) -> Response:
        return await self.count(request, lambda body: anthropic.tokens(anthropic.asked(body)))

    async def count(self, request: Request, counted: Callable[[bytes], JsonObject]) -> Response:
        try:
            result = counted(await request.body())
        except BadRequest as problem:
            return self.refuse(request, 400, str(problem))
        self.log(_line(request, 200))
        return JSONResponse(result)

    async def models(self, request: Request) -> Response:
        self.log(_line(request, 200))
        for_openai = {"id": "scripted", "object": "model", "created": 0, "owned_by": "comply"}
        created = "1970-01-01T00:00:00Z"
        for_anthropic = {"type": "model", "display_name": "Scripted", "created_at": created}
        return JSONResponse(
            {"object": "list", "data": [for_openai | for_anthropic], "has_more": False}
        )

    async def unknown(self, request: Request, _: Exception | None) -> Response:
        asked = f"{request.method} {request.url.path}"
        there = "; ".join(ROUTES)
        return self.refuse(request, 404, f"the scripted model has no {asked}; it has {there}")

    def refuse(self, request: Request, status: int, problem: str) -> Response:
        """An error response that the clients of every format understand."""
        self.log(_line(request, status) | {"refused": problem})
        kind = "not_found_error" if status == 404 else "invalid_request_error"
        error = {"type": kind, "code": status, "message": problem, "status": "INVALID_ARGUMENT"}
        return JSONResponse({"type": "error", "error": error}, status)


def app(reply: Reply, log: Log, *, bodies: bool = False) -> ASGIApp:
    model = ScriptedModel(reply, log, count(1), bodies)
    post = {
        "/v1/messages": model.messages,
        "/v1/messages/count_tokens": model.tokens,
        "/v1/chat/completions": model.chat,
        "/v1/responses": model.responses,
        "/v1beta/models/{call}": model.generate,
    }
    routes = [Route(path, endpoint, methods=["POST"]) for path, endpoint in post.items()]
    routes.append(Route("/v1/models", model.models, methods=["GET"]))
    refusing = {404: model.unknown, 405: model.unknown}
    inner = Starlette(routes=routes, exception_handlers=refusing)

    async def guarded(scope: Scope, receive: Receive, send: Send) -> None:
        """Refuse requests for other hosts: the client uses us as a proxy, or a DNS name of an
        attacker resolves to us."""
        if scope["type"] == "http" and (host := Request(scope).headers.get("host", "")):
            name = host.rpartition(":")[0] or host
            if name not in NAMES:
                problem = (
                    f"the scripted model is not a proxy: it does not forward requests to {host}"
                )
                refused = model.refuse(Request(scope), 403, problem)
                await refused(scope, receive, send)
                return
        await inner(scope, receive, send)

    return guarded


def listen(port: int) -> socket.socket:
    """A socket on loopback; port 0 is any that is free. Raises OSError."""
    return socket.create_server((HOST, port))


def serve(asgi: ASGIApp, at: socket.socket) -> None:
    """Serve until SIGINT or SIGTERM; open streams are cut off."""
    # h11 accepts CONNECT too, so that its sender gets our refusal, and the log has it.
    config = uvicorn.Config(
        asgi, http="h11", lifespan="off", log_config=None, timeout_graceful_shutdown=1
    )
    uvicorn.Server(config).run(sockets=[at])


async def _stream(events: Iterable[Event], wait: float) -> AsyncIterator[str]:
    for event in events:
        if event is None:
            await asyncio.sleep(wait)
            wait = 0
            continue
        name, data = event
        text = data if isinstance(data, str) else json.dumps(data)
        yield f"event: {name}\ndata: {text}\n\n" if name else f"data: {text}\n\n"


def _line(request: Request, status: int) -> JsonObject:
    agent = request.headers.get("user-agent", "")
    asked = f"{request.method} {request.url.path}"
    host = request.headers.get("host", "")
    return {
        "request": asked[:SHOWN],
        "host": host[:SHOWN],
        "from": agent[:SHOWN],
        "status": status,
    }


def _heard(asked: ModelRequest) -> JsonObject:
    prompts = [turn.text for turn in asked.turns if turn.kind == "user"]
    tools: list[JsonValue] = [tool.called for tool in asked.tools]
    prompt = prompts[-1][-SHOWN:] if prompts else ""
    return {"model": asked.model, "stream": asked.stream, "prompt": prompt, "tools": tools}


def _said(answer: ModelAnswer) -> JsonObject:
    why: JsonObject = {"rule": answer.why}
    if answer.call is None:
        return why | {"text": answer.text[:SHOWN]}
    return why | {"call": answer.call.tool.name, "arguments": answer.call.arguments}
