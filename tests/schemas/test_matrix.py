"""What the matrix awaits is what attention lists."""

from typing import get_args

import pytest
from pydantic import ValidationError

from schemas.attention import AttentionKind
from schemas.matrix import AwaitedKind, MatrixParams


def test_what_is_awaited_is_a_kind_of_attention() -> None:
    assert set(get_args(AwaitedKind)) < set(get_args(AttentionKind))


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"limit": 501}, {"missing": "yes"}, {"repo": ""}])
def test_params_that_are_refused(wrong: dict[str, object]) -> None:
    with pytest.raises(ValidationError):
        MatrixParams.model_validate({"projectId": "p", **wrong})
