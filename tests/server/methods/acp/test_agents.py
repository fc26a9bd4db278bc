"""cacp/agent/list: who can be worked with."""

from typing import Any

import pytest

from tests.support.node import AGENT, RpcError
from tests.support.team import FRONTEND, FRONTEND_AGENT, Team


def listed(team: Team, **params: Any) -> dict[str, Any]:
    result = team.node.call("cacp/agent/list", **params)
    return {agent["agentId"]: agent for agent in result["agents"]}


def test_the_agents_of_a_project(team: Team) -> None:
    agents = listed(team, projectId=team.project)
    [frontend] = agents.values()
    assert frontend["agentId"] == FRONTEND_AGENT.rpartition("@")[0]
    assert frontend["hasMail"]
    assert frontend["isAwake"]
    assert frontend["lastSeen"] > "2020"
    assert frontend["repos"] == [
        {"projectId": team.project, "project": "User Auth", "repo": FRONTEND}
    ]
    with pytest.raises(RpcError, match="There is no project none"):
        listed(team, projectId="none")


def test_all_agents_page_by_page(team: Team) -> None:
    sleeper = "aid://example.com/never-seen@1.0.0"
    team.node.key(sleeper, "elsewhere")
    own = AGENT.rpartition("@")[0]
    page = team.node.call("cacp/agent/list", limit=1)
    assert page["ownId"] == own
    seen = page["agents"]
    while "nextCursor" in page:
        page = team.node.call("cacp/agent/list", limit=1, cursor=page["nextCursor"])
        seen += page["agents"]
    assert seen == list(listed(team, limit=500).values())
    ids = [agent["agentId"] for agent in seen]
    assert ids == sorted(set(ids))
    assert own not in ids
    [sleeping] = [agent for agent in seen if agent["agentId"] == sleeper.rpartition("@")[0]]
    assert not sleeping["isAwake"]
    assert "lastSeen" not in sleeping
    assert sleeping["repos"] == []
