"""What cacp/contract/agreed takes."""

import pytest
from pydantic import ValidationError

from schemas.contract_agreed import AgreedParams


@pytest.mark.parametrize("limit", [0, 51])
def test_pages_are_of_few_contents(limit: int) -> None:
    with pytest.raises(ValidationError):
        AgreedParams.model_validate({"projectId": "p", "limit": limit})


def test_the_usual_page() -> None:
    params = AgreedParams.model_validate({"projectId": "p"})
    assert (params.limit, params.cursor) == (50, None)
