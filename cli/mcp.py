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
    key_file: Annotated[
        str | None,
        typer.Option(
            "--key-file",
            metavar="FILE",
            help="A file with the key to call with, in place of CACP_KEY. Only its owner may be "
            "able to read it; ~ is the home directory.",
        ),
    ] = None,
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
    Gemini CLI, Cursor and opencode, and `cacp connect` writes it. It forwards every call to the
    node, with the given key. While the key file can't be used, each call says why.

    \b
    Examples:
      CACP_KEY=cacp_sk_... cacp mcp --url http://127.0.0.1:8080
      CACP_KEY=cacp_sk_... cacp mcp --channel
      cacp mcp --key-file ~/.config/cacp/connections/frontend-app-claude.key
    """
    import anyio

    problem = ""
    if key_file is not None:
        key, problem = _key_in(key_file)
    try:
        client = NodeClient(url, key)
    except ValueError as error:
        fail(USAGE, str(error))
    with client:
        if problem:
            anyio.run(_serve, _refusing(problem), None)
        else:
            anyio.run(_serve, _call_of(client), client if channel else None)
    if channel:
        # The thread that waits for what is new would keep the process for half a minute.
        os._exit(0)


def _key_in(file: str) -> tuple[str | None, str]:
    """The key in a file, or why it can't be used."""
    from cli.key_file import read_key

    try:
        return read_key(file), ""
    except ValueError as error:
        return None, f"{error}. `cacp connect` makes it anew; then start this session again"


async def _serve(call: "Call", channel: NodeClient | None) -> None:
    """Serve the tools; with a client for the `channel`, also what waits for its agent."""
    from mcp.server.stdio import stdio_server

    from server.mcp_tools.server import make_server

    def call_of(ctx: "Context") -> "Call":
        return call

    server = make_server(call_of)
    async with stdio_server() as (read, write):
        if channel is not None:
            from cli.mcp_channel import run_with_channel

            await run_with_channel(server, read, write, channel)
        else:
            await server.run(read, write, server.create_initialization_options())


def _refusing(problem: str) -> "Call":
    """Every call says the problem: an agent shows its user what a tool says, and not why a server
    did not start."""
    from server.mcp_tools.catalog import CallFailed

    async def call(method: str, params: dict[str, Any]) -> Any:
        raise CallFailed(problem, {"reason": "key_file_unusable"})

    return call


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
            raise CallFailed(str(error), {"reason": error.reason}) from None

    return call
