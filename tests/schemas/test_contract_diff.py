"""cacp/contract/diff on the wire."""

import pytest
from pydantic import ValidationError

from schemas.contract_diff import DiffParams


def test_both_versions_may_be_left_out() -> None:
    at = {"projectId": "p", "contractId": "c"}
    given = DiffParams.model_validate(at | {"from": 1, "to": 2})
    assert (given.from_, given.to) == (1, 2)
    assert DiffParams.model_validate(at).from_ is None
    with pytest.raises(ValidationError):
        DiffParams.model_validate(at | {"from": 0})
