"""A real SQLite file with the node's schema, for each test of the store."""

import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from server.domain.identifiers import repo_id_for
from server.store import projects
from server.store.projects import ProjectHeader, Repo
from server.store.sqlite.connection import connect
from server.store.sqlite.migrate import prepare

PROJECT = "f0ebc7e6-3b58-4d02-abb1-b63e1e0ba7ac"


@pytest.fixture(scope="session")
def prepared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A database file with the schema and nothing in it, to be copied."""
    path = tmp_path_factory.mktemp("prepared") / "cacp.db"
    prepare(path)
    return path


@pytest.fixture
def path(prepared: Path, tmp_path: Path) -> Path:
    """A new database file."""
    return Path(shutil.copy(prepared, tmp_path))


@pytest.fixture
def db(path: Path) -> Iterator[sqlite3.Connection]:
    """A connection to it."""
    with closing(connect(path)) as connection:
        yield connection


@pytest.fixture
def project(db: sqlite3.Connection) -> ProjectHeader:
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
