"""Who waits for mail with a key that ends meanwhile is shown nothing (design §6)."""

import threading
from collections.abc import Callable
from contextlib import closing

import pytest

from server.store import keys
from tests.support.located import connect
from tests.support.mail_agent import MailAgent
from tests.support.node import Node, RpcError
from tests.support.waiting import eventually


def revoke(node: Node, agent: str) -> None:
    with closing(connect(node.db)) as db:
        for key in keys.every(db):
            if key.agent_id == agent:
                keys.revoke(db, key.key_id, now=1)


def over_mcp(node: Node, key: str) -> Callable[[list[str]], str]:
    """The tool acp_inbox over /mcp."""

    def call(ids: list[str]) -> str:
        body = {
            "jsonrpc": "2.0",
            "id": 1,
            "method": "tools/call",
            "params": {"name": "acp_inbox", "arguments": {"ack": ids, "wait": 60}},
        }
        headers = {
            "authorization": f"Bearer {key}",
            "accept": "application/json, text/event-stream",
        }
        return node.http.post("/mcp", json=body, headers=headers).text

    return call


@pytest.mark.parametrize("way", ["rpc", "mcp"])
def test_a_key_that_is_revoked_while_it_waits_gets_nothing(
    node: Node, anna: MailAgent, bert: MailAgent, way: str
) -> None:
    """It is not told what came, nor is that marked as delivered to it."""
    first = anna.send(bert)["message"]["id"]
    said: list[str] = []

    def wait() -> None:
        try:
            if way == "mcp":
                said.append(over_mcp(node, str(bert.key))([first]))
            else:
                said.append(str(bert.inbox(ack=[first], wait=60)))
        except RpcError as error:
            said.append(str(error))

    waiting = threading.Thread(target=wait)
    waiting.start()
    acked = "SELECT count(*) FROM processed_messages WHERE message_id = ?"
    eventually(lambda: node.query(acked, first) == [(1,)])
    revoke(node, bert.id)
    secret = "what only the recipient may read"
    second = anna.send(bert, payload={"summary": secret})["message"]["id"]
    eventually(lambda: not waiting.is_alive())
    [answer] = said
    assert secret not in answer
    assert "revoked" in answer
    assert anna.receipts(second) == {bert.address: "pending"}
