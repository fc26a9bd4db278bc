"""Params of cacp/project/graph."""

import pytest
from pydantic import ValidationError

from schemas.graph import GraphParams


def test_all_but_the_project_may_be_left_out() -> None:
    params = GraphParams.model_validate({"projectId": "p"})
    assert (params.contract_id, params.repo, params.provider, params.consumer) == (None,) * 4


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"contractId": ""}, {"depth": 1}, {"consumer": 1}])
def test_params_that_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        GraphParams.model_validate({"projectId": "p", **wrong})
