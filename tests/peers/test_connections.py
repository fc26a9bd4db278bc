"""Connections go to addresses that were checked (design §6), once for each."""

import asyncio
import socket
from collections.abc import Callable
from contextlib import ExitStack
from typing import Any

import pytest
import uvloop

from peers import connections
from peers.client import HttpClient
from peers.errors import NotConnected, PeerUnreachable
from tests.support.scripted_http import ScriptedHttp, answer


def ask(*urls: str, refused: str | None = None) -> list[str]:
    """GET each in turn with one client; the addresses that were checked."""
    checked: list[str] = []

    def problem(address: str) -> str | None:
        checked.append(address)
        return f"{address} is out of bounds" if address == refused else None

    async def run() -> None:
        async with HttpClient(lambda url: None, problem, seconds=5.0) as client:
            for url in urls:
                assert await client.get(url) == {}

    asyncio.run(run())
    return checked


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_refused_address_is_not_called_whatever_its_name(host: str) -> None:
    with ScriptedHttp(answer({})) as server:
        url = server.url.replace("127.0.0.1", host)
        assert "127.0.0.1" in ask(url)
        with pytest.raises(PeerUnreachable, match=r"may not be called: 127.0.0.1 is out of bounds"):
            ask(url, refused="127.0.0.1")
        assert len(server.asked) == 1


def test_a_name_is_resolved_and_checked_once_for_each_connection() -> None:
    with ScriptedHttp(answer({}), keeps=True) as server:
        assert ask(*[server.url] * 3) == ["127.0.0.1"]
    with ScriptedHttp(answer({})) as server:
        assert ask(*[server.url] * 3) == ["127.0.0.1"] * 3


def test_a_connection_serves_no_other_name() -> None:
    """What was checked of a certificate was checked for one name."""
    with ScriptedHttp(answer({}), keeps=True) as server:
        other = server.url.replace("127.0.0.1", "localhost")
        assert len(ask(server.url, other)) > 1


def test_of_a_names_addresses_the_first_that_answers_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with ScriptedHttp(answer({})) as server:
        port = int(server.url.rpartition(":")[2])

        async def resolve(*_: object, **__: object) -> list[Any]:
            return [(0, 0, 0, "", (address, port)) for address in ("127.0.0.2", "127.0.0.1")]

        monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
        assert ask(f"http://node.example:{port}/") == ["127.0.0.2", "127.0.0.1"]


def test_an_address_that_does_not_take_a_connection_is_given_up_soon(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who listens there takes no more than wait already: it is as if nobody were there."""
    monkeypatch.setattr(connections, "CONNECT_SECONDS", 0.1)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, ExitStack() as stack:
        for _ in range(2):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(full.getsockname())
        with pytest.raises(NotConnected, match="can't be reached"):
            ask(f"http://127.0.0.1:{full.getsockname()[1]}")


@pytest.mark.parametrize("loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_a_machine_that_is_gone_ends_its_connections(
    loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    """The kernel's own timers: one that doesn't acknowledge is told from a peer that takes long."""

    async def options(port: int) -> tuple[int, int]:
        stream = await connections.Checked(lambda address: None).connect_tcp("127.0.0.1", port)
        made: socket.socket = stream.get_extra_info("socket")
        keeps = made.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        idle = made.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        await stream.aclose()
        return keeps, idle

    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        asyncio.Runner(loop_factory=loop) as runner,
    ):
        keeps, idle = runner.run(options(server.getsockname()[1]))
    assert keeps
    assert idle < connections.GONE_SECONDS


def test_a_name_with_one_refused_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: object, **__: object) -> list[Any]:
        return [(socket.AF_INET, 0, 0, "", (one, 1)) for one in ("127.0.0.1", "169.254.169.254")]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
    with pytest.raises(PeerUnreachable, match="out of bounds"):
        ask("http://node.example:1/", refused="169.254.169.254")
