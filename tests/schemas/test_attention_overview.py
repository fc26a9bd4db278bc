"""cacp/attention/overview on the wire."""

from typing import Any, get_args

import pytest
from pydantic import ValidationError

from schemas.attention import AttentionKind
from schemas.attention_overview import OverviewAttentionParams, OverviewKind


def test_every_attention_kind_is_one_of_the_overview() -> None:
    assert set(get_args(AttentionKind)) < set(get_args(OverviewKind))


@pytest.mark.parametrize(
    "wrong", [{"groups": []}, {"groups": ["late"]}, {"limit": 201}, {"after": ""}, {"kinds": []}]
)
def test_params(wrong: dict[str, Any]) -> None:
    given = {"projectId": "p", "groups": ["person", "overdue"], "limit": 200, "after": "x"}
    assert OverviewAttentionParams.model_validate(given).limit == 200
    with pytest.raises(ValidationError):
        OverviewAttentionParams.model_validate(given | wrong)
