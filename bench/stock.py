"""The yardstick: stock uvicorn and Starlette with one route that answers a constant.

None of the node's code is in it, so no change of the node changes it.
"""

import sys

import orjson
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

ANSWER = orjson.dumps(
    {
        "jsonrpc": "2.0",
        "result": {
            "contractId": "695296cc-d05a-4f43-99cd-ec3b6197461b",
            "version": 1,
            "status": "proposed",
        },
        "id": "request-123",
    }
)


async def answer(request: Request) -> Response:
    return Response(ANSWER, media_type="application/json")


def main(port: int) -> None:
    app = Starlette(routes=[Route("/", answer, methods=["POST"])])
    uvicorn.run(app, port=port, http="httptools", loop="uvloop", log_config=None, access_log=False)


if __name__ == "__main__":
    main(int(sys.argv[1]))
