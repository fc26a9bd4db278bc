"""A server that breaks one rule: a proxy before a right node.

`/SUITE/TEST/NUMBER/…` is the node as that mutation makes it (`tests.comply.mutations`).

    python -m tests.comply.mutant PORT URL-OF-THE-NODE
"""

import json
import sys
from typing import Any

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from tests.comply.mutations import MUTATIONS, Exchange

PASSED_ON = ("authorization", "content-type")


def parsed(text: str) -> Any:
    try:
        return json.loads(text) if text else None
    except ValueError:
        return None


def application(node: str) -> Starlette:
    client = httpx.AsyncClient(base_url=node, trust_env=False)

    async def serve(request: Request) -> Response:
        given = request.path_params
        mutation = MUTATIONS[f"{given['suite']}/{given['test']}"][int(given["number"])]
        content = await request.body()
        exchange = Exchange(f"/{given['path']}", parsed(content.decode()))
        mutation.before(exchange)
        if exchange.forward:
            if exchange.call != parsed(content.decode()):
                content = json.dumps(exchange.call).encode()
            headers = {name: request.headers[name] for name in PASSED_ON if name in request.headers}
            answer = await client.request(
                request.method, exchange.path, content=content, headers=headers
            )
            exchange.status, exchange.body = answer.status_code, parsed(answer.text)
            exchange.headers = {"content-type": answer.headers.get("content-type", "")}
            mutation.after(exchange)
        body = b"" if exchange.body is None else json.dumps(exchange.body).encode()
        code = 200 if body and exchange.status == 204 else exchange.status
        return Response(body, code, exchange.headers or {"content-type": "application/json"})

    path = "/{suite}/{test}/{number:int}/{path:path}"
    return Starlette(routes=[Route(path, serve, methods=["GET", "POST"])])


if __name__ == "__main__":
    uvicorn.run(application(sys.argv[2]), port=int(sys.argv[1]), log_level="warning")
