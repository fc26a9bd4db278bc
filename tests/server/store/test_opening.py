"""A location decides which kind of database is opened, and which driver is loaded."""

import json
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from server.domain.errors import Unavailable
from server.domain.location import DatabaseUrl, Location
from server.store import changes
from server.store.opening import connect, prepare, storage_at
from server.store.postgresql.connection import PgConnection
from server.store.postgresql.storage import PgStorage
from server.store.sqlite.storage import SqliteStorage
from tests.architecture.source import ROOT
from tests.support.postgresql import drop, empty_database


@pytest.fixture(params=["sqlite", "postgresql"])
def empty(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Location]:
    """Where there is nothing yet."""
    if request.param == "sqlite":
        yield tmp_path / "data" / "node.db"
        return
    url = empty_database()
    yield url
    drop(url)


def test_the_kind_of_storage() -> None:
    url = DatabaseUrl("postgresql://127.0.0.1:9/none")
    on_server = storage_at(url)
    assert isinstance(on_server, PgStorage)
    assert on_server.url == url
    in_file = storage_at(Path("none/node.db"), "NORMAL")
    assert isinstance(in_file, SqliteStorage)
    assert in_file.facts()["durability"] == "NORMAL"
    assert not Path("none").exists(), "nothing is opened yet"


def test_a_database_is_made_once(empty: Location) -> None:
    made = prepare(empty)
    assert made.last_stamp == 0
    assert prepare(empty).epoch == made.epoch
    with closing(connect(empty)) as db:
        assert changes.epoch(db) == made.epoch


def test_a_connection_is_of_its_kind_and_commits_each_statement(empty: Location) -> None:
    prepare(empty)
    kind = PgConnection if isinstance(empty, DatabaseUrl) else sqlite3.Connection
    with closing(connect(empty)) as one, closing(connect(empty)) as other:
        assert isinstance(one, kind)
        changes.put_meta(one, "name", "value")
        assert not one.in_transaction
        assert other.execute("SELECT value FROM meta WHERE name = 'name'").fetchone() == ("value",)


def test_a_database_that_cannot_be_made_is_a_refusal(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    for location in (tmp_path / "file" / "node.db", DatabaseUrl("postgresql://127.0.0.1:9/none")):
        with pytest.raises(Unavailable):
            prepare(location)


def test_a_file_is_opened_without_the_driver_of_a_server(tmp_path: Path) -> None:
    """It takes a tenth of a second to import, and needs not be installed."""
    program = (
        "import json, sys; from pathlib import Path\n"
        "from server.store.opening import connect, prepare, storage_at\n"
        "path = Path(sys.argv[1]); prepare(path); connect(path).close(); storage_at(path)\n"
        "print(json.dumps(sorted(sys.modules)))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "node.db")],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    loaded = set(json.loads(shown.stdout))
    assert "server.store.sqlite.storage" in loaded
    assert not {"psycopg", "server.store.postgresql.connection"} & loaded
