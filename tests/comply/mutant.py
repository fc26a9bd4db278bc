"""A server that breaks one rule: what stands between a client and right nodes."""

import json
from typing import Any

import httpx
from pydantic import JsonValue

from comply.matching import matches
from comply.record import Nearest
from tests.comply.mutations import Exchange, Mutation
from tests.support.node import NO_TLS


class Mutant(httpx.AsyncBaseTransport):
    """The nodes, as a mutation makes them; as they are without one.

    `truth` is what the node itself said to the request it was asked last, as tests hear it;
    `misled`, whether a request did not come to it as it was sent.
    """

    def __init__(self, mutation: Mutation | None = None) -> None:
        self._mutation = mutation or Mutation()
        self._nodes = httpx.AsyncHTTPTransport(verify=NO_TLS)
        self.truth: list[JsonValue] = []
        self.misled = False

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        text = (await request.aread()).decode()
        exchange = Exchange(request.url.path, parsed(text))
        self._mutation.before(exchange)
        self.misled |= not exchange.forward or exchange.call != parsed(text)
        if exchange.forward:
            await self._ask(request, text, exchange)
        body = b"" if exchange.body is None else json.dumps(exchange.body).encode()
        code = 200 if body and exchange.status == 204 else exchange.status
        headers = exchange.headers or {"content-type": "application/json"}
        return httpx.Response(code, headers=headers, content=body)

    async def _ask(self, request: httpx.Request, text: str, exchange: Exchange) -> None:
        headers = dict(request.headers)
        if exchange.call != parsed(text):
            text = json.dumps(exchange.call)
            headers["content-length"] = str(len(text.encode()))
        url = request.url.copy_with(path=exchange.path)
        asked = httpx.Request(request.method, url, headers=headers, content=text.encode())
        answer = await self._nodes.handle_async_request(asked)
        said = (await answer.aread()).decode()
        await answer.aclose()
        exchange.status, exchange.body = answer.status_code, parsed(said)
        exchange.headers = {"content-type": answer.headers.get("content-type", "")}
        body = parsed(said)
        whole: dict[str, JsonValue] = {"status": answer.status_code, "text": said, "body": body}
        whole["headers"] = dict(answer.headers)
        self.truth = [whole, *(body if isinstance(body, list) else [body])]
        self._mutation.after(exchange)

    def is_to_blame(self, near: Nearest) -> bool:
        """Whether the node itself said what was expected."""
        return any(matches(near.expected, one) for one in self.truth)

    async def aclose(self) -> None:
        await self._nodes.aclose()


def parsed(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None
