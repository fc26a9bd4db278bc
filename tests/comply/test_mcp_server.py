"""The MCP server that tests give to agents, as a client of the official SDK meets it."""

import asyncio
import json
import sys
from pathlib import Path

from mcp import Client, StdioServerParameters
from mcp_types import TextContent

from cacp_launcher import command
from comply.mcp_server import NAME, REPORT, TOOL, WORD


def test_it_gives_the_word_and_reports_what_its_client_says(tmp_path: Path) -> None:
    said: list[str] = []

    async def hear(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while line := await reader.readline():
            said.append(json.loads(line)["method"])
        writer.close()

    async def whole() -> None:
        path = str(tmp_path / "report")
        async with await asyncio.start_unix_server(hear, path):
            server = StdioServerParameters(
                command=sys.executable,
                args=command("-m", "comply.mcp_server")[1:],
                env={REPORT: path, WORD: "sesame"},
            )
            async with Client(server) as client:
                assert client.server_info is not None
                assert client.server_info.name == NAME
                assert [tool.name for tool in (await client.list_tools()).tools] == [TOOL]
                answer = await client.call_tool(TOOL, {})
                assert [one.text for one in answer.content if isinstance(one, TextContent)] == [
                    "sesame"
                ]

    asyncio.run(whole())
    assert said[0] in ("initialize", "server/discover")
    assert said[-2:] == ["tools/list", "tools/call"]
