"""rpc.discover: the OpenRPC document, as a method (OpenRPC, Service Discovery Method)."""

from typing import Any

import orjson

from schemas.base import Params
from server import openrpc
from server.methods.base import Context, reads


class DiscoverParams(Params):
    pass


@reads("rpc.discover", DiscoverParams, dict[str, Any])
def discover(ctx: Context, params: DiscoverParams) -> orjson.Fragment:
    """This service, described: every method with the schemas of its params and result."""
    return orjson.Fragment(openrpc.document())
