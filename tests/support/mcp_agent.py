"""MCP clients for tests: the SDK's own, over real HTTP to a node and over a real `cacp mcp`."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import httpx2
from mcp.client.client import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp.client.streamable_http import streamable_http_client

from tests.cli.run import ROOT
from tests.support.node import Node, bearer
from tests.support.waiting import PATIENCE

T = TypeVar("T")
ERAS = ("legacy", "auto")
"""Clients that shake hands first (up to 2025-11-25), and those that don't (2026-07-28)."""


class Refused(Exception):
    """A tool's answer that says what went wrong."""


class McpAgent:
    """An MCP client with a hand for tools."""

    def __init__(self, client: Client) -> None:
        self.client = client

    async def use(self, tool: str, /, **given: Any) -> str:
        """What a tool answers. Raises Refused."""
        result = await self.client.call_tool(tool, given)
        assert len(result.content) == 1
        text = str(getattr(result.content[0], "text", None))
        if result.is_error:
            raise Refused(text)
        return text

    async def fact(self, name: str, tool: str, /, **given: Any) -> str:
        """One fact of what a tool answers, as its lines `- name: value` tell them."""
        return fact(name, await self.use(tool, **given))


def fact(name: str, text: str) -> str:
    """The first `- name: value` of an answer, or `name value` in its lines."""
    for line in text.splitlines():
        if line.startswith(f"- {name}: "):
            return line.removeprefix(f"- {name}: ").strip("`")
    raise AssertionError(f"{name} is not in:\n{text}")


@asynccontextmanager
async def over_http(
    node: Node, key: str | None = None, era: str = "legacy", **headers: str
) -> AsyncIterator[McpAgent]:
    """A client of /mcp."""
    given = bearer(key) | headers
    async with (
        httpx2.AsyncClient(headers=given, trust_env=False, timeout=PATIENCE) as http,
        Client(streamable_http_client(f"{node.url}/mcp", http_client=http), mode=era) as client,
    ):
        yield McpAgent(client)


@asynccontextmanager
async def over_stdio(
    url: str,
    folder: Path,
    key: str | None = None,
    era: str = "legacy",
    *,
    options: Sequence[str] = (),
) -> AsyncIterator[McpAgent]:
    """A client of `cacp mcp` with `options`, which it starts. What that writes to stderr is in
    folder/mcp.log."""
    variables = {"CACP_URL": url, "PYTHONPATH": str(ROOT), "PATH": os.environ["PATH"]}
    if key is not None:
        variables["CACP_KEY"] = key
    command = StdioServerParameters(
        command=sys.executable,
        args=["-m", "cacp_launcher", "mcp", *options],
        env=variables,
        cwd=folder,
    )
    with (folder / "mcp.log").open("w") as log:
        async with Client(stdio_client(command, errlog=log), mode=era) as client:
            yield McpAgent(client)


def run(play: Callable[[], Awaitable[T]]) -> T:
    """The result of a play, which may take as long as anything."""

    async def within() -> T:
        async with asyncio.timeout(PATIENCE):
            return await play()

    return asyncio.run(within())
