"""The MCP server that a test gives an agent: by the official SDK, over stdio, with one tool.

It reports each message of its client to the runner, as a line of JSON, over the socket that
`COMPLY_REPORT` names.

    python -m cacp_launcher -m comply.mcp_server
"""

import json
import os
import socket
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.mcpserver import MCPServer

REPORT = "COMPLY_REPORT"
NAME, TOOL, WORD = "comply", "secret_word", "COMPLY_WORD"


def serve(report: socket.socket, word: str) -> "MCPServer[Any]":
    """The server, ready to run. It sends each request and notification to `report`."""
    from mcp.server.mcpserver import MCPServer

    async def tell(ctx: "ServerRequestContext[Any]", call_next: "CallNext") -> "HandlerResult":
        message = {"method": ctx.method, "params": dict(ctx.params or {})}
        report.sendall(json.dumps(message, default=str).encode() + b"\n")
        return await call_next(ctx)

    server = MCPServer[Any](NAME, middleware=[tell])

    @server.tool(name=TOOL, description="Gives the secret word of this run.")
    def secret_word() -> str:
        return word

    return server


def main() -> None:
    with socket.socket(socket.AF_UNIX) as report:
        report.connect(os.environ[REPORT])
        serve(report, os.environ[WORD]).run("stdio")


if __name__ == "__main__":
    main()
