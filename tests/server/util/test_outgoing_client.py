"""The node's rules for whom it calls (design §6)."""

import asyncio

import pytest

from peers.errors import PeerUnreachable
from server.domain.errors import InvalidInput
from server.util.outgoing_client import CardCheck, make_client
from tests.support.scripted_http import ScriptedHttp, answer
from tests.support.waiting import PATIENCE


def get(url: str, **rules: bool) -> object:
    async def run() -> object:
        async with make_client(seconds=PATIENCE, **({"loopback_allowed": True} | rules)) as client:
            return await client.get(url)

    return asyncio.run(run())


def test_loopback_only_when_allowed() -> None:
    with ScriptedHttp(answer({"a": 1})) as server:
        assert get(server.url) == {"a": 1}
        with pytest.raises(PeerUnreachable, match="loopback"):
            get(server.url, loopback_allowed=False)


@pytest.mark.parametrize("url", ["http://169.254.169.254/", "http://0.0.0.0/", "file:///x"])
def test_some_places_never(url: str) -> None:
    with pytest.raises(PeerUnreachable, match="may not be called"):
        get(url)


def test_private_networks_only_when_allowed() -> None:
    with pytest.raises(PeerUnreachable, match=r"may not be called: .* private network"):
        get("http://10.0.0.1:1/", private_allowed=False)


# --- whose card says what -----------------------------------------------------------------------


def check_card(url: str) -> None:
    async def run() -> None:
        check = CardCheck(loopback_allowed=True)
        try:
            await check(url)
        finally:
            await check.close()

    asyncio.run(run())


def test_an_agent_that_speaks_another_major_version_is_refused() -> None:
    """CACP 2.0, Versioning."""
    with ScriptedHttp(answer({"protocols": {"cacp": "3.0"}})) as server:
        with pytest.raises(
            InvalidInput, match=r"speaks CACP '3\.0', and this node 2\.0"
        ) as refused:
            check_card(server.url)
        assert refused.value.data["reason"] == "unsupported_version"


def test_who_shows_no_card_is_not() -> None:
    with ScriptedHttp(answer({"protocols": {"cacp": "2.1"}})) as server:
        check_card(server.url + "/")
    check_card(server.url)
