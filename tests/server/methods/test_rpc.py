"""rpc.discover (OpenRPC, Service Discovery Method)."""

from tests.support.node import Node


def test_discover_gives_the_published_document(node: Node) -> None:
    assert node.call("rpc.discover") == node.get("/openrpc.json").json()
