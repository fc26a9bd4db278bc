"""`cacp mcp`: the MCP tools over standard input and output."""

from typing import TYPE_CHECKING, Any

from cli.client import DEFAULT_URL, Client, KeyOption, Refused, Unreachable, UrlOption
from cli.terminal import USAGE, fail

if TYPE_CHECKING:
    from server.mcp_tools.catalog import Call
    from server.mcp_tools.server import Context


def mcp(url: UrlOption = DEFAULT_URL, key: KeyOption = None) -> None:
    """Serve a node's tools to an agent over MCP on standard input and output.

    Agents start this themselves: docs/mcp.md has the lines for Claude Code, Codex, Gemini CLI,
    Cursor and opencode. It holds nothing; every call goes to the node, with the key it was given.

    \b
    Example:
      CACP_KEY=cacp_sk_... cacp mcp --url http://127.0.0.1:8080
    """
    import anyio

    try:
        client = Client(url, key)
    except ValueError as error:
        fail(USAGE, str(error))
    with client:
        anyio.run(_serve, client)


async def _serve(client: Client) -> None:
    from mcp.server.stdio import stdio_server

    from server.mcp_tools.server import make_server

    call = _call_of(client)

    def call_of(ctx: "Context") -> "Call":
        return call

    server = make_server(call_of)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())


def _call_of(client: Client) -> "Call":
    from anyio import to_thread

    from server.mcp_tools.catalog import CallFailed

    async def call(method: str, params: dict[str, Any]) -> Any:
        wait = params.get("wait")
        patience = wait if isinstance(wait, int | float) else 0.0
        try:
            return await to_thread.run_sync(
                client.call, method, params, patience, abandon_on_cancel=True
            )
        except Refused as refused:
            raise CallFailed(refused.message, refused.data) from None
        except Unreachable as error:
            raise CallFailed(str(error), {"reason": "unreachable"}) from None

    return call
