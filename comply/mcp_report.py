"""Receives what an agent sends to the MCP server of a test (`comply.mcp_server`)."""

import asyncio
import json
from collections.abc import Callable
from pathlib import Path

from pydantic import JsonValue

from cacp_launcher import command
from comply import mcp_server
from comply.process import OUTPUT_BYTES
from schemas.jsont import JsonObject


class McpReport:
    """Listens to every copy of the server that the agent starts, on a socket in `folder`."""

    def __init__(self, folder: Path, heard: Callable[[JsonValue], None]) -> None:
        self.path = folder / "mcp"
        self.heard = heard
        self.listener: asyncio.Server | None = None
        self.readers: set[asyncio.StreamWriter] = set()

    def offer(self, word: str) -> JsonObject:
        """The entry for `mcpServers` of `session/new` (Agent Client Protocol, Session Setup)."""
        variables: dict[str, str] = {mcp_server.REPORT: str(self.path), mcp_server.WORD: word}
        program, *args = command("-m", mcp_server.__name__)
        return {
            "name": mcp_server.NAME,
            "command": program,
            "args": [*args],
            "env": [{"name": name, "value": value} for name, value in variables.items()],
        }

    async def start(self) -> None:
        self.listener = await asyncio.start_unix_server(self._listen, self.path, limit=OUTPUT_BYTES)

    async def _listen(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.readers.add(writer)
        try:
            while line := await reader.readline():
                self.heard(json.loads(line))
        except (ConnectionError, ValueError):
            # The client is gone, or is not our server.
            return
        finally:
            self.readers.discard(writer)
            writer.close()

    async def close(self) -> None:
        if self.listener is None:
            return
        self.listener.close()
        for writer in list(self.readers):
            writer.close()
