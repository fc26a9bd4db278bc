"""Connections go to addresses that were checked (design §7), once for each."""

import asyncio
import socket
from typing import Any

import pytest

from peers.client import Client, Unreachable
from tests.hostile import Answering, answer


def ask(*urls: str, refused: str | None = None) -> list[str]:
    """GET each in turn with one client; the addresses that were checked."""
    checked: list[str] = []

    def problem(address: str) -> str | None:
        checked.append(address)
        return f"{address} is out of bounds" if address == refused else None

    async def run() -> None:
        async with Client(lambda url: None, problem, seconds=5.0) as client:
            for url in urls:
                assert await client.get(url) == {}

    asyncio.run(run())
    return checked


@pytest.mark.parametrize("host", ["127.0.0.1", "localhost"])
def test_a_refused_address_is_not_called_whatever_its_name(host: str) -> None:
    with Answering(answer({})) as server:
        url = server.url.replace("127.0.0.1", host)
        assert "127.0.0.1" in ask(url)
        with pytest.raises(Unreachable, match=r"may not be called: 127.0.0.1 is out of bounds"):
            ask(url, refused="127.0.0.1")
        assert len(server.asked) == 1


def test_a_name_is_resolved_and_checked_once_for_each_connection() -> None:
    with Answering(answer({}), keeps=True) as server:
        assert ask(*[server.url] * 3) == ["127.0.0.1"]
    with Answering(answer({})) as server:
        assert ask(*[server.url] * 3) == ["127.0.0.1"] * 3


def test_a_connection_serves_no_other_name() -> None:
    """What was checked of a certificate was checked for one name."""
    with Answering(answer({}), keeps=True) as server:
        other = server.url.replace("127.0.0.1", "localhost")
        assert len(ask(server.url, other)) > 1


def test_of_a_names_addresses_the_first_that_answers_is_called(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Answering(answer({})) as server:
        port = int(server.url.rpartition(":")[2])

        async def resolve(*_: object, **__: object) -> list[Any]:
            return [(0, 0, 0, "", (address, port)) for address in ("127.0.0.2", "127.0.0.1")]

        monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
        assert ask(f"http://node.example:{port}/") == ["127.0.0.2", "127.0.0.1"]


def test_a_name_with_one_refused_address_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    async def resolve(*_: object, **__: object) -> list[Any]:
        return [(socket.AF_INET, 0, 0, "", (one, 1)) for one in ("127.0.0.1", "169.254.169.254")]

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolve)
    with pytest.raises(Unreachable, match="out of bounds"):
        ask("http://node.example:1/", refused="169.254.169.254")
