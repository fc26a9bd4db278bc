"""cacp/agent/list on the wire."""

import pytest
from pydantic import ValidationError

from schemas.agent import AgentOverviewParams, ListAgentsParams, ListedAgent


def test_params_have_bounds() -> None:
    assert ListAgentsParams.model_validate({"projectId": "p"}).limit == 100
    for wrong in ({"limit": 0}, {"limit": 501}, {"project": "p"}):
        with pytest.raises(ValidationError):
            ListAgentsParams.model_validate(wrong)


def test_what_is_unknown_of_an_agent_is_absent() -> None:
    agent = {"agentId": "aid://a", "hasMail": True, "repos": [], "moreRepos": 0}
    assert ListedAgent.model_validate(agent).model_dump(by_alias=True, exclude_none=True) == agent


def test_an_overview_is_paged_and_searched() -> None:
    params = AgentOverviewParams.model_validate({"query": "mobile"})
    assert (params.limit, params.cursor) == (100, None)
    for wrong in ({"limit": 101}, {"query": "x" * 201}, {"projectId": "p"}):
        with pytest.raises(ValidationError):
            AgentOverviewParams.model_validate(wrong)
