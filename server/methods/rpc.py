"""rpc.discover returns the OpenRPC document (OpenRPC, Service Discovery Method)."""

from typing import Any

from schemas.base import Params
from server.methods import openrpc
from server.methods.base import Context, reads


class DiscoverParams(Params):
    pass


@reads("rpc.discover", DiscoverParams, dict[str, Any], reach="nothing")
def discover(ctx: Context, params: DiscoverParams) -> bytes:
    """Describe this service: every method with the schemas of its params and result."""
    return openrpc.document()
