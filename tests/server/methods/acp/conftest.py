"""Mail without a node."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.server.methods.acp.office import Office


@pytest.fixture
def office(tmp_path: Path) -> Iterator[Office]:
    """An office on a new database."""
    made = Office(tmp_path / "cacp.db")
    yield made
    made.db.close()
