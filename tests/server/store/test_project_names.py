"""The names of projects, by id."""

from server.store import project_names
from server.store.connection import Connection


def test_every_project_has_its_name(db: Connection) -> None:
    assert project_names.every(db) == {}
    for id, name in (("b", "Login"), ("a", "Coupons")):
        row = (id, name, "", "", "any", 1, 1, None, None, "word")
        db.execute(f"INSERT INTO projects VALUES ({', '.join('?' * len(row))})", row)
    assert project_names.every(db) == {"a": "Coupons", "b": "Login"}
