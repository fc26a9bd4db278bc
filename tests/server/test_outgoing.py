"""The node's rules for whom it calls (design §7)."""

import asyncio

import pytest

from peers.client import Unreachable
from server.outgoing import make_client
from tests.hostile import Answering, answer


def get(url: str, **rules: bool) -> object:
    async def run() -> object:
        async with make_client(seconds=1.0, **({"loopback_allowed": True} | rules)) as client:
            return await client.get(url)

    return asyncio.run(run())


def test_loopback_only_when_allowed() -> None:
    with Answering(answer({"a": 1})) as server:
        assert get(server.url) == {"a": 1}
        with pytest.raises(Unreachable, match="loopback"):
            get(server.url, loopback_allowed=False)


@pytest.mark.parametrize("url", ["http://169.254.169.254/", "http://0.0.0.0/", "file:///x"])
def test_some_places_never(url: str) -> None:
    with pytest.raises(Unreachable, match="may not be called"):
        get(url)


def test_private_networks_only_when_allowed() -> None:
    with pytest.raises(Unreachable, match=r"may not be called: .* private network"):
        get("http://10.0.0.1:1/", private_allowed=False)
