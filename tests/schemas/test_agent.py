"""cacp/agent/list on the wire."""

import pytest
from pydantic import ValidationError

from schemas.agent import ListAgentsParams, ListedAgent


def test_params_have_bounds() -> None:
    assert ListAgentsParams.model_validate({"projectId": "p"}).limit == 100
    for wrong in ({"limit": 0}, {"limit": 501}, {"project": "p"}):
        with pytest.raises(ValidationError):
            ListAgentsParams.model_validate(wrong)


def test_what_is_unknown_of_an_agent_is_absent() -> None:
    agent = {"agentId": "aid://a", "hasMail": True, "repos": [], "moreRepos": 0}
    assert ListedAgent.model_validate(agent).model_dump(by_alias=True, exclude_none=True) == agent
