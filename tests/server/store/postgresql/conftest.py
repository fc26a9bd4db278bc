"""A database of its own on a real PostgreSQL server, for each test."""

from collections.abc import Iterator

import pytest

from server.domain.location import DatabaseUrl
from tests.support.postgresql import drop, empty_database


@pytest.fixture
def url() -> Iterator[DatabaseUrl]:
    """The URL of an empty database."""
    made = empty_database()
    yield made
    drop(made)
