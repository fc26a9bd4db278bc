"""The names of projects, by id."""

from server.store import project_names
from server.store.connection import Connection


def test_every_project_has_its_name(db: Connection) -> None:
    assert project_names.every(db) == {}
    for id, name in (("b", "Login"), ("a", "Coupons")):
        db.execute("INSERT INTO projects VALUES (?, ?, '', '', '', 1, 1, NULL, NULL)", (id, name))
    assert project_names.every(db) == {"a": "Coupons", "b": "Login"}
