"""cacp/agent/overview: who is awake, and what waits for whom."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from server.auth.authenticator import Caller
from server.domain.acp.breaker import CircuitBreaker
from server.domain.agents import identity
from server.domain.errors import InvalidInput
from server.methods import METHODS
from server.store import pushes, sender_limits
from server.store.pushes import Webhook
from tests.support.in_process_node import ANA, BEN, CLEO, HOUR, HUMAN, InProcessNode
from tests.support.node import AGENT

SENT = {"to": [BEN], "type": "knowledge.push", "payload": {"summary": "s"}}


def send(node: InProcessNode) -> None:
    """Ana writes to Ben."""
    method = METHODS["acp/send"]
    params = method.params.model_validate(SENT)
    node.run(lambda ctx: method.run(ctx, params), Caller(ANA, "r", "verified", "key"))


def seen(node: InProcessNode, agent: str, **params: Any) -> Any:
    human = agent == HUMAN
    return node.call("cacp/agent/overview", agent, human=human, **params)


def test_who_sleeps_over_work_comes_first(tmp_path: Path) -> None:
    with InProcessNode(tmp_path) as node:
        send(node)
        node.offered(ANA, BEN)
        node.node.last_calls[CLEO] = node.now
        node.node.last_calls[BEN] = node.now - HOUR
        result = seen(node, HUMAN)
        ben, cleo = result["agents"][:2]
        assert (ben["agentId"], ben["isAwake"], ben["lastSeen"] > "2020") == (BEN, False, True)
        assert ben["work"]["handoffs"] == 1
        assert ben["work"]["mail"] == 2, "the offer is a message too"
        assert ben["work"]["total"] == 3
        assert ben["channels"] == [{"channel": "inbox"}]
        assert ben["key"]["active"] == 1
        assert "projectCount" not in ben["key"]
        assert (cleo["agentId"], cleo["isAwake"], cleo["work"]["total"]) == (CLEO, True, 0)
        assert (result["awake"], result["stalled"]) == (1, 1)
        [own] = [agent for agent in result["agents"] if agent["isNode"]]
        assert own["agentId"] == identity(AGENT)
        assert "key" not in own


def test_an_agent_sees_what_waits_for_itself_only(tmp_path: Path) -> None:
    with InProcessNode(tmp_path) as node:
        send(node)
        agents = {agent["agentId"]: agent for agent in seen(node, CLEO)["agents"]}
        assert agents[CLEO]["work"]["total"] == 0
        for hidden in ("work", "channels", "key", "isHuman"):
            assert hidden not in agents[BEN]
        assert seen(node, CLEO)["stalled"] == 0
        assert seen(node, BEN)["stalled"] == 1, "of itself it knows"
        assert seen(node, ANA, operator=True)["agents"][0]["work"]["mail"] == 1


def test_pages_and_search(tmp_path: Path) -> None:
    with InProcessNode(tmp_path) as node:
        everyone = seen(node, HUMAN)
        listed: list[Any] = []
        page: dict[str, Any] = {"nextCursor": None}
        while "nextCursor" in page:
            page = seen(node, HUMAN, limit=2, cursor=page["nextCursor"])
            listed += page["agents"]
        assert listed == everyone["agents"]
        assert [agent["agentId"] for agent in seen(node, HUMAN, query="CLE")["agents"]] == [CLEO]
        assert seen(node, HUMAN, query="nobody") == {
            "agents": [],
            "total": 0,
            "awake": 0,
            "stalled": 0,
            "elsewhere": 0,
        }
        for wrong in ("x", "9.1.a", "1.-1.a", "1.1."):
            with pytest.raises(InvalidInput, match="cursor"):
                seen(node, HUMAN, cursor=wrong)


def test_channels_are_those_that_are_set_up_and_pauses_are_told(tmp_path: Path) -> None:
    with InProcessNode(tmp_path) as node:
        states = node.node.acp.capabilities | {"channel": "available"}
        node.node = replace(node.node, acp=replace(node.node.acp, capabilities=states))
        pushes.put_webhook(node.db, BEN, Webhook("w", "http://x", "2026-01-01T00:00:00Z"))
        paused = CircuitBreaker(failures=1, open_until=node.now + HOUR // 2, trips=1)
        sender_limits.put_breaker(node.db, f"channel:{BEN}", paused)
        [ben] = seen(node, HUMAN, query="ben")["agents"]
        assert [channel["channel"] for channel in ben["channels"]] == ["inbox", "channel"]
        assert ben["channels"][1]["pausedUntil"] > "2020"
        [ana] = seen(node, HUMAN, query="/ana")["agents"]
        assert [channel["channel"] for channel in ana["channels"]] == ["inbox"]
