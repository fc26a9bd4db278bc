"""A real database with the node's tables, for each test of the store."""

from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from server.domain.identifiers import repo_id_for
from server.domain.location import Location
from server.store import projects
from server.store.connection import Connection
from server.store.opening import connect
from server.store.projects import ProjectHeader, Repo
from tests.support.fresh_store import fresh_store

PROJECT = "f0ebc7e6-3b58-4d02-abb1-b63e1e0ba7ac"


@pytest.fixture
def location(tmp_path: Path) -> Iterator[Location]:
    """A new database."""
    with fresh_store(tmp_path / "cacp.db") as made:
        yield made


@pytest.fixture
def path(location: Location) -> Path:
    """The file of a new database, for tests that are about SQLite."""
    assert isinstance(location, Path), "mark the test: sqlite"
    return location


@pytest.fixture
def db(location: Location) -> Iterator[Connection]:
    """A connection to it."""
    with closing(connect(location)) as connection:
        yield connection


@pytest.fixture
def project(db: Connection) -> ProjectHeader:
    """A project with one repo, `backend-api`, that nobody holds."""
    header = ProjectHeader(PROJECT, "User Auth", "Login", "planning", "any", 1_000, 1_000)
    projects.insert(db, header, [repo("backend-api", stamp=1_000)])
    return header


def repo(name: str, *, stamp: int) -> Repo:
    return Repo(
        repo_id=repo_id_for(PROJECT, name),
        name=name,
        role="backend",
        language="python",
        relevant_paths='["src/"]',
        url=None,
        stamp=stamp,
    )
