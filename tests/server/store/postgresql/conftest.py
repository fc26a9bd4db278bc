"""A database of its own on a real PostgreSQL server, for each test."""

import os
import uuid
from collections.abc import Iterator
from urllib.parse import urlsplit

import psycopg
import pytest

SERVER = os.environ.get("CACP_TEST_DATABASE_URL", "postgresql://127.0.0.1/postgres")


@pytest.fixture
def url() -> Iterator[str]:
    """The URL of an empty database."""
    name = f"cacp_test_{uuid.uuid4().hex[:12]}"
    with psycopg.connect(SERVER, autocommit=True) as server:
        server.execute(f"CREATE DATABASE {name} ENCODING 'UTF8' TEMPLATE template0".encode())
        try:
            yield urlsplit(SERVER)._replace(path=f"/{name}").geturl()
        finally:
            server.execute(f"DROP DATABASE {name} WITH (FORCE)".encode())
