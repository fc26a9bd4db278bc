"""Fixtures of the tests of methods."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.methods.cacp.duo import Duo
from tests.support.in_process_node import InProcessNode


@pytest.fixture
def duo(tmp_path: Path) -> Iterator[Duo]:
    with InProcessNode(tmp_path) as desk:
        yield Duo(desk)
