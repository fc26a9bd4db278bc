"""The SDK's server over the table: what clients are told, and how waiting shows."""

import asyncio
from typing import Any

import pytest
from mcp.client.client import Client

from server.mcp_tools import server
from server.mcp_tools.catalog import TOOLS, Call, CallFailed, Json
from server.mcp_tools.server import describe, make_server
from tests.server.mcp_tools.test_calls import INBOX
from tests.support.mcp_agent import McpAgent, Refused
from tests.support.waiting import PATIENCE


def client(call: Call) -> Client:
    """A client in this process."""
    return Client(make_server(lambda ctx: call), mode="legacy")


def test_a_tool_as_clients_see_it() -> None:
    shown = describe(TOOLS["cacp_project_list"])
    assert shown.annotations is not None
    assert shown.annotations.read_only_hint
    assert shown.annotations.idempotent_hint
    assert not shown.annotations.destructive_hint
    proposed = describe(TOOLS["cacp_contract_propose"])
    assert proposed.annotations is not None
    assert not proposed.annotations.read_only_hint
    assert not proposed.annotations.idempotent_hint


def test_what_a_client_is_told_at_first() -> None:
    async def call(method: str, params: Json) -> Any:
        raise AssertionError("nothing is called")

    async def play() -> None:
        async with client(call) as one:
            assert one.instructions == server.INSTRUCTIONS
            assert one.server_capabilities.tools is not None
            assert one.server_capabilities.resources is not None
            assert one.server_capabilities.prompts is None

    asyncio.run(play())


def test_an_error_is_the_tools_answer_and_an_unknown_tool_the_protocols() -> None:
    async def call(method: str, params: Json) -> Any:
        raise CallFailed("no node answers", {"reason": "unreachable"})

    async def play() -> None:
        async with client(call) as one:
            for given in ({}, {"wait": 5}):
                with pytest.raises(Refused, match=r"no node answers\. Tell your user"):
                    await McpAgent(one).use("acp_inbox", **given)
            with pytest.raises(Exception, match="nope is not a tool"):
                await one.call_tool("nope", {"wait": 5})
            with pytest.raises(Exception, match="no node answers"):
                await one.list_resources()
            with pytest.raises(Exception, match="no node answers"):
                await one.read_resource("cacp://projects/p")

    asyncio.run(play())


def test_a_call_that_waits_shows_that_it_lives(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "PROGRESS_SECONDS", 0.01)
    ticks: list[tuple[float, float | None]] = []
    enough = asyncio.Event()

    async def call(method: str, params: Json) -> Any:
        await enough.wait()
        return INBOX

    async def tick(progress: float, total: float | None, message: str | None) -> None:
        ticks.append((progress, total))
        if len(ticks) == 3:
            enough.set()

    async def play() -> None:
        async with asyncio.timeout(PATIENCE), client(call) as one:
            await one.call_tool("acp_inbox", {"wait": 30}, progress_callback=tick)

    asyncio.run(play())
    assert ticks[0][1] == 30
    assert [progress for progress, _ in ticks] == sorted(progress for progress, _ in ticks)


def test_a_fault_of_our_own_is_told_by_its_id_only() -> None:
    async def call(method: str, params: Json) -> Any:
        return {"no": "such result"}

    async def play() -> None:
        async with client(call) as one:
            with pytest.raises(Exception, match=r"Server error [0-9a-f]{16}: an internal error"):
                await one.call_tool("cacp_project_list", {})

    asyncio.run(play())
