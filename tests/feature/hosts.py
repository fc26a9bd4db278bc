"""Agents in this process: the MCP SDK's client, which gives its model the tools and instructions of
the server, and makes the calls that the model decides on."""

from uuid import uuid4

from httpx2 import TransportError
from mcp.client.client import Client
from mcp_types import Tool

from cli import hook
from comply.model.conversation import ModelRequest, OfferedTool, ToolCall, Turn
from comply.model.server import Reply
from tests.feature.sheet import Sheet
from tests.support.mcp_agent import over_http, run
from tests.support.node import Node
from tests.support.waiting import PATIENCE


class SdkAgent:
    """The agent of a sheet's repository, at a node. Each turn is a session of its own."""

    def __init__(self, sheet: Sheet, node: Node, reply: Reply) -> None:
        self.name, self.node, self._reply = sheet.repo, node, reply
        self.key = node.key(sheet.agent, sheet.repo)

    def work(self, prompt: str) -> None:
        """One turn, which ends early when the node does."""
        try:
            run(lambda: self._work(prompt))
        except* TransportError:
            if self.node.process is not None:
                raise

    async def _work(self, prompt: str) -> None:
        session = str(uuid4())
        async with over_http(self.node, self.key) as agent:
            client = agent.client
            tools = tuple(map(_offered, (await client.list_tools()).tools))
            turns = [Turn("system", f"## cacp\n{client.instructions}"), Turn("user", prompt)]
            turns += self.shown("SessionStart", session)
            while True:
                answer = self._reply(ModelRequest("model", tuple(turns), tools))
                if answer.call is None:
                    turns.append(Turn("assistant", answer.text))
                    more = self.shown("Stop", session)
                    if not more:
                        return
                    turns += more
                else:
                    result = Turn("result", await _result(client, answer.call))
                    turns += [Turn("call", answer.call.tool.name), result]

    def shown(self, event: str, session: str) -> list[Turn]:
        """What its hooks show the model."""
        return []


class HookedAgent(SdkAgent):
    """The same with the hooks of Claude Code."""

    def shown(self, event: str, session: str) -> list[Turn]:
        params = hook.question(hook.EVENTS["claude"][event], {"session_id": session})
        try:
            result = hook.ask(self.node.url, self.key, params, PATIENCE)
        except OSError:
            return []
        output = hook.answer("claude", event, result, None) or {}
        texts = [
            output.get("reason"),
            output.get("hookSpecificOutput", {}).get("additionalContext"),
        ]
        return [Turn("user", text) for text in texts if text]


def _offered(tool: Tool) -> OfferedTool:
    return OfferedTool(tool.name, tool.input_schema, about=tool.description or "")


async def _result(client: Client, call: ToolCall) -> str:
    """The text of a tool's result."""
    result = await client.call_tool(call.tool.name, call.arguments)
    return "\n".join(getattr(part, "text", "") for part in result.content)
