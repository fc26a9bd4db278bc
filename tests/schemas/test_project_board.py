"""Params and results of cacp/project/board, timeline and stateAt."""

from typing import get_args

import pytest
from pydantic import ValidationError

from schemas.contract import TimelineStep
from schemas.project_board import BoardParams, ProjectStep, StateAtParams


@pytest.mark.parametrize("given", [{"limit": 0}, {"limit": 101}, {"status": "done"}])
def test_wrong_params_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        BoardParams.model_validate({"projectId": "p"} | given)


@pytest.mark.parametrize("given", [{"change": 0}, {"at": "yesterday"}, {"change": "1"}])
def test_a_wrong_place_is_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        StateAtParams.model_validate({"projectId": "p"} | given)


def test_every_step_of_a_contract_is_one_of_the_project() -> None:
    assert {*get_args(TimelineStep)} <= {*get_args(ProjectStep)}
