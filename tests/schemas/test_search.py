"""The params of cacp/search."""

import pytest
from pydantic import ValidationError

from schemas.search import SearchParams


@pytest.mark.parametrize(
    "wrong",
    [
        *({"query": ""}, {"query": "x" * 501}, {"query": "x", "kinds": []}),
        *({"query": "x", "kinds": ["file"]}, {"query": "x", "limit": 101}),
        {"query": "x", "more": 1},
    ],
)
def test_wrong_params_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        SearchParams.model_validate(wrong)
