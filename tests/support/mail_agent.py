"""Agents that write to each other on a real node, each with a key, a box and limits of its own."""

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import uuid4

from tests.support.node import Node


@dataclass(frozen=True)
class MailAgent:
    """The holder of a key."""

    node: Node
    id: str
    key: str

    @property
    def address(self) -> str:
        """Its id without a version."""
        return self.id.rpartition("@")[0]

    def call(self, method: str, /, **params: Any) -> Any:
        """The result of `acp/METHOD`."""
        return self.node.call(f"acp/{method}", key=self.key, **params)

    def send(self, *to: "MailAgent", **params: Any) -> Any:
        """Send a knowledge.push to agents, unless `params` say otherwise; the SendResult."""
        given: dict[str, Any] = {
            "to": [one.id for one in to],
            "type": "knowledge.push",
            "payload": {"summary": "hello"},
        }
        return self.call("send", **given | params)

    def inbox(self, **params: Any) -> Any:
        return self.call("inbox", **params)

    def received(self) -> list[str]:
        """The ids of what it has not acknowledged, in the order of its box."""
        return [one["id"] for one in self.inbox(limit=500)["messages"]]

    def receipts(self, message_id: str) -> dict[str, str]:
        """How far a message is with each of its recipients, by address."""
        (found,) = self.call("query", message_id=message_id)["messages"]
        return {one["recipient"]: one["status"] for one in found["receipts"]}


def agent(node: Node, name: str = "agent", *, human: bool = False) -> MailAgent:
    """A new agent of the node, that no other test knows."""
    agent_id = f"aid://example.com/{name}-{uuid4().hex[:12]}@1.0.0"
    return MailAgent(node, agent_id, node.key(agent_id, "mail", human=human))


MailAgents = Callable[..., MailAgent]
"""`agent` on a certain node."""


def soon(seconds: float) -> str:
    """That many seconds from now, as ISO 8601 UTC."""
    moment = time.time() + seconds
    return (
        time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(moment)) + f".{int(moment % 1 * 1e6):06d}Z"
    )
