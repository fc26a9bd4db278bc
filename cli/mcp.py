"""`cacp mcp`: the MCP tools over standard input and output."""

import os
from typing import TYPE_CHECKING, Annotated, Any

import typer

from cli.client import DEFAULT_URL, CallRefused, NodeClient, NodeUnreachable
from cli.options import KeyOption, UrlOption
from cli.terminal import USAGE, fail

if TYPE_CHECKING:
    from server.mcp_tools.catalog import Call
    from server.mcp_tools.server import Context


def mcp(
    url: UrlOption = DEFAULT_URL,
    key: KeyOption = None,
    channel: Annotated[
        bool,
        typer.Option(
            "--channel",
            help="Also show a running Claude Code session what waits for its agent, as it comes. "
            "A research preview of Claude Code.",
        ),
    ] = False,
) -> None:
    """Serve a node's tools to an agent over MCP on standard input and output.

    An agent starts this command itself: docs/mcp.md has the configuration for Claude Code, Codex,
    Gemini CLI, Cursor and opencode. It forwards every call to the node, with the given key.

    \b
    Examples:
      CACP_KEY=cacp_sk_... cacp mcp --url http://127.0.0.1:8080
      CACP_KEY=cacp_sk_... cacp mcp --channel
    """
    import anyio

    try:
        client = NodeClient(url, key)
    except ValueError as error:
        fail(USAGE, str(error))
    with client:
        anyio.run(_serve, client, channel)
    if channel:
        # The thread that waits for what is new would keep the process for half a minute.
        os._exit(0)


async def _serve(client: NodeClient, channel: bool) -> None:
    from mcp.server.stdio import stdio_server

    from server.mcp_tools.server import make_server

    call = _call_of(client)

    def call_of(ctx: "Context") -> "Call":
        return call

    server = make_server(call_of)
    async with stdio_server() as (read, write):
        if channel:
            from cli.mcp_channel import run_with_channel

            await run_with_channel(server, read, write, client)
        else:
            await server.run(read, write, server.create_initialization_options())


def _call_of(client: NodeClient) -> "Call":
    from anyio import to_thread

    from server.mcp_tools.catalog import CallFailed

    async def call(method: str, params: dict[str, Any]) -> Any:
        wait = params.get("wait")
        patience = wait if isinstance(wait, int | float) else 0.0
        try:
            return await to_thread.run_sync(
                client.call, method, params, patience, abandon_on_cancel=True
            )
        except CallRefused as refused:
            raise CallFailed(refused.message, refused.data) from None
        except NodeUnreachable as error:
            raise CallFailed(str(error), {"reason": "unreachable"}) from None

    return call
