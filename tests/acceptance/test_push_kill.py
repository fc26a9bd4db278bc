"""kill -9 while mail is pushed: it comes back, and nobody sees it twice by its id (§10, §12.5)."""

from pathlib import Path

from tests.support.mail_agent import agent
from tests.support.pushing_node import PushingNode
from tests.support.waiting import eventually
from tests.support.webhook_receiver import receiver


def test_a_push_comes_back_after_a_kill(tmp_path: Path) -> None:
    with receiver() as hook, PushingNode(tmp_path, acp_webhook_seconds=30) as node:
        anna, bert = agent(node, "anna"), agent(node, "bert")
        bert.call("subscribe", url=hook.url)
        hook.answer = "hang"
        sent = [anna.send(bert, priority="high")["message"]["id"] for _ in range(3)]
        eventually(lambda: hook.ids == sent[:1])
        shown = bert.call("claim", session_id="s1", limit=1)["messages"]
        assert [one["id"] for one in shown] == sent[:1]
        node.kill()
        hook.answer = 204
        hook.release.set()
        # As if the leases of what was under way were over by now.
        node.expire_leases(bert, "channel")
        node.start()
        eventually(lambda: hook.ids[1:] == sent)
        eventually(lambda: {row[0] for row in node.pushed(bert, "channel")} == {"delivered"})
        # The session's lease outlived the kill too: it is not shown the first one again.
        left = bert.call("claim", session_id="s1")["messages"]
        assert [one["id"] for one in left] == sent[1:]
        assert bert.received() == sent
        # A receiver that goes by the ids has each message once, and acknowledges it once.
        assert list(dict.fromkeys(hook.ids)) == sent
        done = bert.call("ack", message_ids=list(dict.fromkeys(hook.ids)))["acked"]
        assert [one["outcome"] for one in done] == ["read"] * 3
        assert {row[0] for row in node.pushed(bert, "channel")} == {"read"}
        assert "Traceback" not in node.log
