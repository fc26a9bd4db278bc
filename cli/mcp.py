"""`cacp mcp`: the MCP tools over standard input and output."""

from typing import TYPE_CHECKING, Any

from cli.client import DEFAULT_URL, CallRefused, NodeClient, NodeUnreachable
from cli.options import KeyOption, UrlOption
from cli.terminal import USAGE, fail

if TYPE_CHECKING:
    from server.mcp_tools.catalog import Call
    from server.mcp_tools.server import Context


def mcp(url: UrlOption = DEFAULT_URL, key: KeyOption = None) -> None:
    """Serve a node's tools to an agent over MCP on standard input and output.

    An agent starts this command itself: docs/mcp.md has the configuration for Claude Code, Codex,
    Gemini CLI, Cursor and opencode. It forwards every call to the node, with the given key.

    \b
    Example:
      CACP_KEY=cacp_sk_... cacp mcp --url http://127.0.0.1:8080
    """
    import anyio

    try:
        client = NodeClient(url, key)
    except ValueError as error:
        fail(USAGE, str(error))
    with client:
        anyio.run(_serve, client)


async def _serve(client: NodeClient) -> None:
    from mcp.server.stdio import stdio_server

    from server.mcp_tools.server import make_server

    call = _call_of(client)

    def call_of(ctx: "Context") -> "Call":
        return call

    server = make_server(call_of)
    async with stdio_server() as (read, write):
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
