"""Methods on a database of their own, for what needs many calls or a clock that is moved."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.desk import Desk


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with Desk(tmp_path) as desk:
        yield desk
