"""How a refused call is told apart: code and `data.reason`."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from tests.support.node import RpcError


@contextmanager
def refused(code: int, reason: str, **data: Any) -> Iterator[None]:
    """The call within is refused with this code and reason, and at least these data."""
    with pytest.raises(RpcError) as error:
        yield
    assert (error.value.code, error.value.reason) == (code, reason), error.value
    assert error.value.data | data == error.value.data
    assert error.value.message
