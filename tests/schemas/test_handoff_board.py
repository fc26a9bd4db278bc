"""The params of acp/handoffs and acp/teams."""

import pytest
from pydantic import ValidationError

from schemas.handoff_board import HandoffsParams, TeamsParams


def test_a_state_is_one_of_those_that_there_are() -> None:
    assert HandoffsParams.model_validate({"status": "proposed"}).status == "proposed"
    with pytest.raises(ValidationError, match="status"):
        HandoffsParams.model_validate({"status": "lost"})


def test_a_page_has_a_limit() -> None:
    for params in (HandoffsParams, TeamsParams):
        with pytest.raises(ValidationError, match="limit"):
            params.model_validate({"limit": 0})
