"""Params and results of cacp/activity/list."""

from typing import get_args

import pytest
from pydantic import ValidationError

from schemas.activity import ChangeKind, ListActivityParams, ListActivityResult
from server.domain.activity import KINDS, MESSAGE


def test_all_params_are_optional() -> None:
    params = ListActivityParams.model_validate({})
    assert (params.limit, params.kinds, params.spans) == (50, None, None)


@pytest.mark.parametrize(
    "given", [{"kinds": []}, {"kinds": ["sleep"]}, {"limit": 201}, {"cursor": 0}, {"spans": 1}]
)
def test_wrong_params_are_refused(given: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        ListActivityParams.model_validate(given)


def test_the_kinds_are_those_that_readers_may_see() -> None:
    assert {*get_args(ChangeKind)} == KINDS | {MESSAGE}


def test_a_result_may_be_empty() -> None:
    assert ListActivityResult.model_validate({"changes": []}).next_cursor is None
