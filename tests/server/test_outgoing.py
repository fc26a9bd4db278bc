"""Outgoing calls keep to the node's rules on addresses (design §7)."""

import anyio
import pytest

from peers.outgoing import NoAnswer
from server.outgoing import outgoing


@pytest.mark.parametrize(
    "url", ["http://169.254.169.254/", "http://127.0.0.1:9/", "http://localhost:9/", "file:///x"]
)
def test_a_node_that_others_reach_calls_neither_metadata_nor_loopback(url: str) -> None:
    async def call() -> None:
        async with outgoing(False) as client:
            await client.get(url)

    with pytest.raises(NoAnswer, match="may not be called"):
        anyio.run(call)


def test_a_node_on_loopback_calls_loopback() -> None:
    async def call() -> None:
        async with outgoing(True) as client:
            await client.get("http://127.0.0.1:9/")

    with pytest.raises(NoAnswer, match="can't be reached"):
        anyio.run(call)
