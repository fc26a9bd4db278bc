"""The names of projects, by id."""

from contextlib import closing
from pathlib import Path

from server.store import project_names
from server.store.sqlite.connection import connect
from server.store.sqlite.migrate import prepare


def test_every_project_has_its_name(tmp_path: Path) -> None:
    path = tmp_path / "cacp.db"
    prepare(path)
    with closing(connect(path)) as db:
        assert project_names.every(db) == {}
        for id, name in (("b", "Login"), ("a", "Coupons")):
            db.execute(
                "INSERT INTO projects VALUES (?, ?, '', '', '', 1, 1, NULL, NULL)", (id, name)
            )
        assert project_names.every(db) == {"a": "Coupons", "b": "Login"}
