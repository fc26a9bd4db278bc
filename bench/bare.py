"""The bare server: the node's HTTP stack, admission and body limits, with a constant answer."""

import sys
from typing import TypeVar, cast

from starlette.applications import Starlette
from starlette.routing import Route

from bench.stock import ANSWER
from server.auth.authenticator import Authenticator
from server.http.admission import Admission
from server.http.rate_limit import RateLimit
from server.http.rpc_endpoint import RpcEndpoint
from server.rpc.dispatch import RequestContext
from server.serve import admission, http_server, listen_on
from server.settings import load
from server.store.connection import Connection, ReadFunction
from server.util.log_once import RateLimitedLog

T = TypeVar("T")


class Constant:
    """Takes the place of the dispatcher."""

    async def answer(self, body: bytes, context: RequestContext) -> bytes:
        return ANSWER


def main(port: int) -> None:
    settings = load(port=port)

    async def without_database(function: ReadFunction[T], /) -> T:
        """Callers over loopback are admitted without a query."""
        return function(cast(Connection, None))

    authenticator = Authenticator(settings, bytes(32))
    callers = Admission(authenticator, without_database, RateLimit(0), RateLimitedLog())
    rpc = RpcEndpoint(Constant(), callers, settings.body_limit, settings.file_body_limit)  # type: ignore[arg-type]
    app = Starlette(routes=[Route("/", rpc, methods=["POST"])])
    server = http_server(app, settings, admission(settings), rpc)
    server.run(sockets=listen_on(settings.host, port))


if __name__ == "__main__":
    main(int(sys.argv[1]))
