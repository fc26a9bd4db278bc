"""`cacp clock` on a real file."""

import json
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from server.store import mesh
from tests.cli.run import cacp


def test_what_is_deferred_is_listed_and_accepted(tmp_path: Path) -> None:
    db = str(tmp_path / "cacp.db")
    cacp("keys", "create", "a", "--repo", "r", db=db)
    assert json.loads(cacp("clock", "deferred", "--json", db=db).stdout) == []
    assert "Nothing is deferred" in cacp("clock", "accept", db=db).stderr
    due = time.time_ns() // 1000 + 3_600_000_000
    message = mesh.Aside("d", "aid://h/beta@1", "cacp/context/sync", '{"projectId": "p1"}')
    with closing(sqlite3.connect(db)) as connection:
        mesh.put_aside(connection, message, due)
        connection.commit()
    [one] = json.loads(cacp("clock", "deferred", "--json", db=db).stdout)
    assert (one["peer"], one["projectId"]) == ("aid://h/beta@1", "p1")
    assert "p1" in cacp("clock", "deferred", db=db).stdout
    assert "accepted 1 message, due until" in cacp("clock", "accept", db=db).stderr
    assert json.loads(cacp("clock", "deferred", "--json", db=db).stdout) == []
    with closing(sqlite3.connect(db)) as connection:
        assert mesh.due(connection, 0) == [message]
        assert mesh.accepted(connection) > due
